// Shared by the tests of apps in the page.
import { fileURLToPath } from 'node:url';

import { leave, rest, say } from './kit.mjs';

const SHOTS = process.env.MO_SHOTS;
export const path = (name) => fileURLToPath(new URL(name, import.meta.url));
export const own = (...args) => ({ command: process.execPath, args: [path('../it/apps_server.mjs'), ...args] });
export const shoot = async (page, name) => SHOTS && page.screenshot({ path: `${SHOTS}/${name}.png` });

export const appOf = (page) => page.locator('[data-app]').last();
/** The document of the app: the frame inside the frame. */
export const inside = (page) => page.frameLocator('[data-app] iframe').last().frameLocator('iframe');

/** A new conversation, in which the model has made these calls. */
export async function open(bench, view, calls) {
  const page = await bench.visit('/', view);
  await page.locator('[data-example]').first().waitFor();
  await page.locator('[data-tool-picker]').waitFor();
  bench.model.script.push({ calls }, { text: 'Here it is.' });
  await say(page, 'show it');
  await page.getByText('Here it is.').waitFor();
  await rest(page);
  return page;
}

/** Fails if the page itself did something wrong. The browser reports requests of an
 *  app that its policy refused; they are no fault of the page. */
export async function close(page) {
  await leave(page, /^(csp|request):/);
}
