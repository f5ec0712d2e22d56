// useMediaQuery - whether a media query matches, as a ref.

import { onScopeDispose, readonly, ref, type Ref } from 'vue';

export function useMediaQuery(query: string): Readonly<Ref<boolean>> {
  const list = matchMedia(query);
  const fits = ref(list.matches);
  const look = () => {
    fits.value = list.matches;
  };
  list.addEventListener('change', look);
  onScopeDispose(() => list.removeEventListener('change', look));
  return readonly(fits);
}
