/* SPDX-License-Identifier: Apache-2.0 */
/* A table from keys to indices. */
#include "table.h"

#include <stdlib.h>

int table_open(struct table *table, uint32_t entries)
{
	uint32_t buckets = 4;

	while (buckets < 2 * entries)
		buckets *= 2;
	*table = (struct table){.buckets = calloc(buckets, sizeof(*table->buckets)),
				.mask = buckets - 1};
	return table->buckets ? 0 : -1;
}

void table_close(struct table *table)
{
	free(table->buckets);
	table->buckets = NULL;
}

bool table_put(struct table *table, uint32_t key, uint32_t index)
{
	uint32_t i = table_bucket_of(table, key), there;

	if (table_get(table, key, &there))
		return false;
	while (table->buckets[i].value)
		i = (i + 1) & table->mask;
	table->buckets[i] = (struct table_bucket){.key = key, .value = index + 1};
	return true;
}
