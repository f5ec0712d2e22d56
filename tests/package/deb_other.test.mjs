// The Debian package of the other architecture, by emulation.
import { describe } from 'node:test';

import { debTests } from '../lib/deb.mjs';
import { other } from '../lib/package.mjs';

describe(`the Debian package, ${other}`, () => debTests(other));
