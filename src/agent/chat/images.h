/* images.h - the images that a message names, read from the box.
 *
 * The page uploads attached files into the workspace and names them in the last
 * lines of the message ("Attached files:", one "- uploads/NAME" each). Before
 * such a message is stored, the images among them are read, and become blocks
 * of its entry:
 *
 *   {"type":"image","path":"uploads/a.png","mimeType":"image/png",
 *    "size":123,"data":"<base64>"}
 *   {"type":"image","path":"uploads/b.png","size":99999999,
 *    "left":"too_big"}
 *
 * So a conversation keeps what its model saw, even if the file is changed or
 * the box is gone. The bytes are in this one entry; members get it without
 * them. A model that cannot see gets the message with the names only.
 *
 * The type is that of the bytes (codec/picture.h). Of a file that is too big,
 * the page may have put a smaller copy beside it: uploads/.view/NAME.
 *
 * Limits: MO_CHAT_IMAGES images of a message; together they fit into an entry;
 * MO_CHAT_IMAGE_SIDE pixels each way. A file over a limit, or that cannot be
 * read, stays a name. */
#ifndef MO_AGENT_CHAT_IMAGES_H
#define MO_AGENT_CHAT_IMAGES_H

#include "base/str.h"

#define MO_CHAT_IMAGES     10
#define MO_CHAT_IMAGE_SIDE 8000 /* pixels; providers refuse more */

struct chat;
struct images;

/* Starts reading what the text of the message that is being said names. True:
 * mo_turn_said() follows, from the loop. False: there is nothing to read. */
bool mo_chat_images_start(struct chat *c, struct mo_span text);
/* The turn is stopped, or the chat ends: reads no more. */
void mo_chat_images_stop(struct chat *c);
/* The blocks that were read, comma-joined. */
struct mo_span mo_chat_images_blocks(const struct chat *c);
void mo_chat_images_free(struct chat *c);
/* Cuts the next path off the list of files at the end of a message; p NULL:
 * there is none (pure). */
struct mo_span mo_chat_images_list(struct mo_span text);
struct mo_span mo_chat_images_next(struct mo_span *list);

#endif
