/* SPDX-License-Identifier: Apache-2.0 */
/* Options that consist of fields: "scs=30,prb=273". */
#ifndef GEN_FIELDS_H
#define GEN_FIELDS_H

#include <stdbool.h>

/*
 * Read each field with a function that gets its place among the names (NULL ends them) and its
 * value, and returns false if that is impossible. Returns NULL, or what is wrong with the text.
 */
const char *fields_read(const char *text, char *const *names,
			bool (*read)(int field, char *value, void *to), void *to);

#endif
