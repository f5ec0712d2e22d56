// useAttachments - files that go with the next message. Each is uploaded into the
// workspace as soon as it is chosen, and can be removed until the message is sent.

import { computed, ref, watch } from 'vue';
import { newId } from '../lib/format';
import { errorText } from '../lib/http';
import { mayShrink, shrink } from '../lib/shrink';
import { freeName, joined, listFiles, removeFile, safeName, smallerCopy, UPLOADS, uploadFile } from '../lib/workspace';

export interface Attachment {
  id: string;
  name: string;
  path: string;
  size: number;
  part: number; // uploaded, from 0 to 1
  why: string; // it failed
  stop: AbortController;
}

// An upload of which everything may be on its way is not aborted: it ends, and the
// file is removed then.
const ABORT_MIN = 4 * 1024 * 1024; // bytes
const ABORT_MAX = 0.9;

const isAbort = (e: unknown) => e instanceof DOMException && e.name === 'AbortError';

export function useAttachments(session: () => string) {
  const files = ref<Attachment[]>([]);
  const naming = ref(0); // chosen, but not in the list yet: a message must not leave without them
  const isUploading = computed(() => naming.value > 0 || files.value.some((f) => f.part < 1 && !f.why));
  const ready = computed(() => files.value.filter((f) => f.part === 1 && !f.why).map((f) => f.path));

  const taken = async (): Promise<Set<string>> => {
    const there = await listFiles(session(), UPLOADS).catch(() => ({ entries: [] }));
    return new Set([...there.entries.map((e) => e.name), ...files.value.map((f) => f.name)]);
  };
  // Models are sent this copy of a large image. Without it they get the name only.
  async function uploadSmaller(a: Attachment, file: File): Promise<void> {
    const small = await shrink(file);
    if (small) await uploadFile(session(), smallerCopy(a.name), small, { signal: a.stop.signal });
  }
  async function upload(a: Attachment, file: File): Promise<void> {
    const now = () => files.value.find((f) => f.id === a.id);
    try {
      await uploadFile(session(), a.path, file, {
        progress: (part) => {
          const f = now();
          if (f) f.part = Math.min(part, 0.99);
        },
        signal: a.stop.signal,
      });
      if (mayShrink(file)) await uploadSmaller(a, file);
      const f = now();
      if (f) f.part = 1;
      else await removeFile(session(), a.path).catch(() => undefined); // removed meanwhile
    } catch (e) {
      const f = now();
      if (f && !isAbort(e)) f.why = errorText(e);
    }
  }
  async function add(chosen: Iterable<File>): Promise<void> {
    const all = [...chosen];
    if (!all.length) return;
    naming.value++;
    const names = await taken();
    naming.value--;
    for (const file of all) {
      const name = freeName(safeName(file.name || 'file'), names);
      names.add(name);
      const a: Attachment = {
        id: newId(), name, path: joined(UPLOADS, name), size: file.size, part: 0, why: '', stop: new AbortController(),
      };
      files.value = [...files.value, a];
      void upload(a, file);
    }
  }
  function remove(id: string): void {
    const f = files.value.find((x) => x.id === id);
    if (!f) return;
    if (f.part === 1 && !f.why) void removeFile(session(), f.path).catch(() => undefined);
    else if (f.size > ABORT_MIN && f.part < ABORT_MAX) f.stop.abort();
    files.value = files.value.filter((x) => x.id !== id);
  }
  /** They belong to a message now. */
  const clear = (): void => {
    files.value = [];
  };
  watch(session, () => {
    for (const f of files.value) f.stop.abort();
    clear();
  });
  return { files, isUploading, ready, add, remove, clear };
}
