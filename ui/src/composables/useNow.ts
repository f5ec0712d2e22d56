// useNow - the current time, updated once a second.

import { onScopeDispose, ref, type Ref } from 'vue';

export function useNow(ms = 1000): Ref<number> {
  const now = ref(Date.now());
  const timer = setInterval(() => {
    now.value = Date.now();
  }, ms);
  onScopeDispose(() => clearInterval(timer));
  return now;
}
