/* SPDX-License-Identifier: Apache-2.0 */
/* The files of vectors. */
#include "vectors.h"

#include "test.h"

const char *block_value(const struct block *b, const char *key)
{
	for (unsigned i = 0; i < b->lines; i++)
		if (strcmp(b->line[i].key, key) == 0)
			return b->line[i].name;
	return NULL;
}

size_t hex_decode(const char *hex, uint8_t *to, size_t size)
{
	size_t n = 0;
	unsigned byte;

	for (; n < size && sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
		to[n] = (uint8_t)byte;
	return n;
}

size_t block_bytes(const struct block *b, uint8_t *to, size_t size)
{
	size_t n = 0;

	for (unsigned i = 0; i < b->lines; i++) {
		if (strcmp(b->line[i].key, "bytes") == 0) {
			CHECK(n < size);
			n += hex_decode(b->line[i].value, to + n, size - n);
		}
	}
	return n;
}

static void add_line(struct block *b, const char *text)
{
	struct line *l;
	char hex[128];

	CHECK(b->lines < sizeof(b->line) / sizeof(*b->line));
	l = &b->line[b->lines++];
	*l = (struct line){0};
	if (sscanf(text, "bytes %127s", hex) == 1) {
		strcpy(l->key, "bytes");
		strcpy(l->value, hex);
		return;
	}
	CHECK(sscanf(text, "%15s %47s %127[^\n]", l->key, l->name, l->value) >= 2);
}

unsigned for_each_block(const char *directory, const char *file, const char *keyword,
			block_test *test)
{
	struct block b = {0};
	char path[512], text[256], word[16];
	unsigned n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	f = fopen(path, "r");
	CHECK(f != NULL);
	while (fgets(text, sizeof(text), f)) {
		if (text[0] == '#' || text[0] == '\n')
			continue;
		if (sscanf(text, "%15s", word) == 1 && strcmp(word, keyword) == 0) {
			if (n++)
				test(&b);
			b = (struct block){0};
			CHECK(sscanf(text, "%*s %47s %47s", b.name, b.rest) >= 1);
		} else {
			add_line(&b, text);
		}
	}
	if (n)
		test(&b);
	fclose(f);
	return n;
}
