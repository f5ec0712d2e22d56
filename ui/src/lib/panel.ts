// panel - whether the panel beside the conversation was open, on this device. It is
// folded until somebody opens it.

const KEY = 'mo.panel';

export const wasPanelOpen = (): boolean => {
  try {
    return localStorage.getItem(KEY) === 'open';
  } catch {
    return false;
  }
};
export const keepPanelOpen = (is: boolean): void => {
  try {
    localStorage.setItem(KEY, is ? 'open' : 'folded');
  } catch { /* not kept */ }
};
