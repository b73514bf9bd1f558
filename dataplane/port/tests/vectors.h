/* SPDX-License-Identifier: Apache-2.0 */
/* Read files of vectors: blocks that begin with a keyword and a name. */
#ifndef DRAY_TEST_VECTORS_H
#define DRAY_TEST_VECTORS_H

#include <stddef.h>
#include <stdint.h>

struct line {
	char key[16], name[48], value[128];
};

struct block {
	char name[48], rest[48];
	unsigned lines;
	struct line line[48];
};

typedef void block_test(const struct block *block);

/* Call `test` for each block; returns how many there were. */
unsigned for_each_block(const char *directory, const char *file, const char *keyword,
			block_test *test);

/* The word after a key, or NULL. */
const char *block_value(const struct block *block, const char *key);

/* All `bytes` lines; returns how many bytes. */
size_t block_bytes(const struct block *block, uint8_t *to, size_t size);
size_t hex_decode(const char *hex, uint8_t *to, size_t size);

#endif
