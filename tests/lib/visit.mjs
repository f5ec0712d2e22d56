// A browser for programs that start one: BROWSER is a script that runs this
// with the name of a person and the address to open.
import { Visitor } from './idp.mjs';

await new Visitor().visit(process.argv[3], process.argv[2]);
