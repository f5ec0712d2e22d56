// The balancer of tests/it as a program: its arguments are the ports of the
// servers. Prints its address, and ends with SIGTERM.
import { balancer } from '../it/balancer.mjs';

const front = await balancer(process.argv.slice(2).map(Number));
console.log(`balancer: ${front.url}`);
process.on('SIGTERM', async () => {
  await front.close();
  process.exit(0);
});
