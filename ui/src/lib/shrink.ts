// shrink - a smaller copy of an image, for models that can see. They look at
// images in about this size anyway; the original stays in the workspace.

const SIDE = 1568; // pixels
const SMALL = 300 * 1024; // bytes: smaller files go as they are
const TYPES = /^image\/(png|jpeg|gif|webp|avif|bmp)$/;

export const mayShrink = (file: { type: string; size: number }): boolean =>
  TYPES.test(file.type) && file.size > SMALL;

/** A JPEG, or null if the browser cannot read the image. */
export async function shrink(file: Blob): Promise<Blob | null> {
  const image = await createImageBitmap(file).catch(() => null);
  if (!image) return null;
  const scale = Math.min(1, SIDE / Math.max(image.width, image.height));
  const canvas = new OffscreenCanvas(Math.max(1, Math.round(image.width * scale)), Math.max(1, Math.round(image.height * scale)));
  const to = canvas.getContext('2d');
  if (!to) return null;
  to.fillStyle = '#fff'; // in place of transparency
  to.fillRect(0, 0, canvas.width, canvas.height);
  to.drawImage(image, 0, 0, canvas.width, canvas.height);
  image.close();
  return canvas.convertToBlob({ type: 'image/jpeg', quality: 0.85 });
}
