/* SPDX-License-Identifier: Apache-2.0 */
/* A table from keys to indices. */
#include "table.h"

#include <stdlib.h>

int table_open(struct table *table, uint32_t entries)
{
	uint32_t slots = 4;

	while (slots < 2 * entries)
		slots *= 2;
	*table = (struct table){.slots = calloc(slots, sizeof(*table->slots)), .mask = slots - 1};
	return table->slots ? 0 : -1;
}

void table_close(struct table *table)
{
	free(table->slots);
	table->slots = NULL;
}

bool table_put(struct table *table, uint32_t key, uint32_t index)
{
	uint32_t i = table_slot_of(table, key), there;

	if (table_get(table, key, &there))
		return false;
	while (table->slots[i].value)
		i = (i + 1) & table->mask;
	table->slots[i] = (struct table_slot){.key = key, .value = index + 1};
	return true;
}
