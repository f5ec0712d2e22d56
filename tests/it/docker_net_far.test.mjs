// Docker boxes with a network, of an engine that is reached over TCP: it shares
// no directory with us, so connections come over the stream of the network
// container.
import { cases } from './docker_net_cases.mjs';

cases(true);
