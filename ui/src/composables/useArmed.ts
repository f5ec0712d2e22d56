// useArmed - true when something to approve has been shown unchanged for a
// moment. The model decides when it appears, and a click or key that was meant
// for something else must not approve it.

import { onScopeDispose, ref, watch, type Ref } from 'vue';

export const ARM_MS = 700;

/** what: changes when the shown thing does; '': nothing is shown. */
export function useArmed(what: () => string): { armed: Ref<boolean>; again: () => void } {
  const armed = ref(false);
  let timer = 0;
  const again = () => {
    armed.value = false;
    clearTimeout(timer);
    if (what()) timer = window.setTimeout(() => (armed.value = true), ARM_MS);
  };
  watch(what, again, { immediate: true, flush: 'post' });
  onScopeDispose(() => clearTimeout(timer));
  return { armed, again };
}
