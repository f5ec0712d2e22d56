// useFileDrop - files that are dropped anywhere on the page, or pasted.

import { onMounted, onUnmounted, ref, type Ref } from 'vue';

const hasFiles = (d: DataTransfer | null): boolean =>
  Boolean(d?.types.includes('Files'));

/** A dropped file never replaces the page, whether or not somebody takes it. */
export function keepPageOnDrop(): void {
  const keep = (e: DragEvent) => {
    if (hasFiles(e.dataTransfer)) e.preventDefault();
  };
  window.addEventListener('dragover', keep);
  window.addEventListener('drop', keep);
}

/** True while files are dragged over the page. */
export function useFileDrop(take: (files: File[]) => void): Ref<boolean> {
  const isOver = ref(false);
  let depth = 0; // elements below the pointer that were entered and not left
  const enter = (e: DragEvent) => {
    if (!hasFiles(e.dataTransfer)) return;
    depth++;
    isOver.value = true;
  };
  const leave = (e: DragEvent) => {
    if (!hasFiles(e.dataTransfer)) return;
    depth = Math.max(0, depth - 1);
    isOver.value = depth > 0;
  };
  const drop = (e: DragEvent) => {
    depth = 0;
    isOver.value = false;
    const files = [...(e.dataTransfer?.files ?? [])];
    if (files.length) take(files);
  };
  onMounted(() => {
    window.addEventListener('dragenter', enter);
    window.addEventListener('dragleave', leave);
    window.addEventListener('drop', drop);
  });
  onUnmounted(() => {
    window.removeEventListener('dragenter', enter);
    window.removeEventListener('dragleave', leave);
    window.removeEventListener('drop', drop);
  });
  return isOver;
}
