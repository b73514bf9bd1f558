/* SPDX-License-Identifier: Apache-2.0 */
/* A table from 32-bit keys to indices, made once and then only read. */
#ifndef VNF_TABLE_H
#define VNF_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct table {
	struct table_bucket *buckets;
	uint32_t mask;
};

struct table_bucket {
	uint32_t key, value; /* value: index + 1; 0: free */
};

/* Room for `entries`, at most half full. 0, or -1: no memory. */
int table_open(struct table *table, uint32_t entries);
void table_close(struct table *table);

/* False if the key is there already. */
bool table_put(struct table *table, uint32_t key, uint32_t index);

static inline uint32_t table_bucket_of(const struct table *table, uint32_t key)
{
	uint32_t h = key * 0x9e3779b1u;

	h ^= h >> 15;
	h *= 0x85ebca77u;
	return (h ^ h >> 13) & table->mask;
}

static inline bool table_get(const struct table *table, uint32_t key, uint32_t *index)
{
	uint32_t i = table_bucket_of(table, key);

	for (; table->buckets[i].value; i = (i + 1) & table->mask) {
		if (table->buckets[i].key == key) {
			*index = table->buckets[i].value - 1;
			return true;
		}
	}
	return false;
}

#endif
