/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the fields of an option. */
#include "fields.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 200u

const char *fields_read(const char *text, char *const *names,
			bool (*read)(int field, char *value, void *to), void *to)
{
	char copy[TEXT_MAX], *rest = copy, *value;
	unsigned seen = 0;

	if (strlen(text) >= sizeof(copy))
		return "is too long";
	strcpy(copy, text);
	while (*rest) {
		int field = getsubopt(&rest, names, &value);

		if (field < 0)
			return "has a field that it does not know";
		if (seen & 1u << field)
			return "has a field twice";
		if (!value || !read(field, value, to))
			return "has an impossible value";
		seen |= 1u << field;
	}
	return NULL;
}
