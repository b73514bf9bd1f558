/* SPDX-License-Identifier: Apache-2.0 */
/* Text files with one record on each line; "#" begins a comment. */
#ifndef VNF_LINES_H
#define VNF_LINES_H

struct lines_error {
	char text[160];
};

#define LINES_FIELDS 8u /* of a line; any further fields count as one more, and are not stored */

/* Take the fields of a line that has any. Returns NULL, or what is wrong with the line. */
typedef const char *lines_take(void *to, char *const *fields, unsigned n);

/* Give every line's fields to `take`. 0, or -1 with the error's text, which names the line. */
int lines_read(const char *path, lines_take *take, void *to, struct lines_error *error);

#endif
