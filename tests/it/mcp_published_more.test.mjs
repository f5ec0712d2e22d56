// See tests/lib/published.mjs.
import { published } from '../lib/published.mjs';

published('more');
