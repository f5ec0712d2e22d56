// download - saves bytes or text of a peer as a file. Its type is always that of
// unknown bytes: a browser must not open it as a page of ours.

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

export function download(name: string, content: string | Uint8Array<ArrayBuffer>): void {
  const url = URL.createObjectURL(new Blob([content], { type: 'application/octet-stream' }));
  const a = document.createElement('a');
  a.href = url;
  a.download = name.replace(/[^\w.-]+/g, '_').slice(-120) || 'download';
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
