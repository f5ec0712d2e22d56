// The Debian package of this machine's architecture. Its times are printed and
// decide nothing.
import { describe } from 'node:test';

import { debTests } from '../lib/deb.mjs';
import { machine } from '../lib/package.mjs';

describe(`the Debian package, ${machine}`, () => debTests(machine));
