/* SPDX-License-Identifier: Apache-2.0 */
/* Options and results of another version's size. */
#include "sized.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

/* Every such struct begins with it. */
static int size_of(const void *given, size_t *size)
{
	memcpy(size, given, sizeof(*size));
	if (*size < sizeof(*size))
		return -EINVAL;
	return *size > SIZED_MAX ? -E2BIG : 0;
}

int sized_read(void *own, size_t known, const void *given)
{
	const uint8_t *bytes = given;
	size_t size;
	int ret = size_of(given, &size);

	if (ret)
		return ret;
	for (size_t i = known; i < size; i++)
		if (bytes[i])
			return -E2BIG;
	memcpy(own, given, size < known ? size : known);
	return 0;
}

int sized_write(void *given, const void *own, size_t known)
{
	size_t size, copied;
	int ret = size_of(given, &size);

	if (ret)
		return ret;
	copied = size < known ? size : known;
	memcpy(given, own, copied);
	memset((uint8_t *)given + copied, 0, size - copied);
	memcpy(given, &size, sizeof(size));
	return 0;
}
