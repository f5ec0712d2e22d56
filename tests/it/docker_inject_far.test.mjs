// The same for an engine that is reached over TCP: the certificates are in a
// volume that the network container fills.
import { cases } from './docker_inject_cases.mjs';

cases(true);
