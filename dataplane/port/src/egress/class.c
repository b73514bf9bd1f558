/* SPDX-License-Identifier: Apache-2.0 */
/* Packets that wait, and their lists. */
#include "class.h"

#include "../owner.h"
#include "scheduler.h"

struct item *class_item(const struct class *c, uint32_t item)
{
	return &c->scheduler->items[item];
}

void list_put(const struct class *c, struct list *list, uint32_t item)
{
	class_item(c, item)->next = ITEM_NONE;
	if (list->head == ITEM_NONE)
		list->head = item;
	else
		class_item(c, list->tail)->next = item;
	list->tail = item;
	list->packets++;
	list->bytes += item_length(c, item);
}

uint32_t list_take(const struct class *c, struct list *list)
{
	uint32_t item = list->head;

	if (item == ITEM_NONE)
		return item;
	list->head = class_item(c, item)->next;
	list->packets--;
	list->bytes -= item_length(c, item);
	return item;
}

void item_free(struct scheduler *s, uint32_t item)
{
	s->items[item].next = s->free;
	s->free = item;
	s->waiting--;
}

uint32_t item_new(struct scheduler *s)
{
	uint32_t item = s->free;

	s->free = s->items[item].next;
	s->waiting++;
	return item;
}

void class_drop(struct class *c, uint32_t item, bool late)
{
	struct scheduler *s = c->scheduler;

	count_add(late ? &c->report->late : &c->report->dropped, 1);
	s->drop(s->drop_context, &s->items[item].pkt);
	item_free(s, item);
}

void class_count_marked(struct class *c)
{
	count_add(&c->report->marked, 1);
}
