/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all traffic classes of a port share: packets that wait, their lists, and what a queueing
 * discipline and a scheduler do.
 */
#ifndef DRAY_CLASS_H
#define DRAY_CLASS_H

#include <stdbool.h>
#include <stdint.h>

#include "../layout.h"
#include "bucket.h"
#include "dray.h"

#define ITEM_NONE UINT32_MAX
#define CLASS_NONE UINT32_MAX

/* A packet that waits. */
struct item {
	struct dray_pkt pkt;
	uint64_t since; /* ns, when it was handed over; slot deadlines: when its slot ends */
	uint32_t next;	/* of its list */
};

/* Packets in order, by their index in the scheduler's items. */
struct list {
	uint32_t head, tail;
	uint32_t packets;
	uint64_t bytes;
};

struct class;
struct scheduler;

/*
 * A queueing discipline. put takes a packet, and may drop this one or others (class_drop). take
 * returns the packet that leaves next, or ITEM_NONE if none is left: it may drop others. init and
 * end may be NULL: it has no more than the class's queue.
 */
struct discipline {
	int (*init)(struct class *c);
	void (*put)(struct class *c, uint32_t item, uint64_t now);
	uint32_t (*take)(struct class *c, uint64_t now);
	void (*shed)(struct class *c); /* drop one packet of several */
	void (*end)(struct class *c);
	/* whether a packet that was taken, and had to wait after all, is too late; NULL: none is */
	bool (*late)(const struct class *c, uint32_t item, uint64_t now);
};

/* State of a CoDel (RFC 8289). */
struct codel {
	uint64_t first_above; /* ns, when the wait was too long for an interval; 0: it is not */
	uint64_t drop_next;
	uint32_t count, last_count;
	bool dropping;
};

struct fair; /* flows of SFQ and FQ-CoDel */

/* A two-piece linear curve of bytes over time, from a point on: see hfsc.c. */
struct curve {
	uint64_t x, y;	     /* ns, bytes: where it begins */
	uint64_t dx, dy;     /* the first piece */
	uint64_t fast, slow; /* slopes: bytes in 2^32 ns */
};

struct hfsc {
	struct curve deadline, eligible, share;
	uint64_t done; /* bytes sent by the guarantee */
	uint64_t total;
	uint64_t due, from; /* ns: deadline of the next packet, and when it becomes eligible */
	uint64_t turn;	    /* virtual time */
};

struct class
{
	const struct discipline *discipline;
	struct scheduler *scheduler;
	const struct wire_class *plan;
	struct list queue; /* of FIFO, CoDel and slots; SFQ and FQ-CoDel: only counted */
	uint32_t held;	   /* taken, to know its length; the next that leaves */
	struct codel codel;
	struct fair *fair;
	struct bucket granted, ceil;
	/* of HTB: bytes that it may send in its turn, by its grant and by borrowing, and that a
	 * turn brings */
	int64_t deficit[2], quantum;
	struct hfsc hfsc;
	struct telemetry_class *report;
};

static inline bool class_waits(const struct class *c)
{
	return c->held != ITEM_NONE || c->queue.packets > 0;
}

struct item *class_item(const struct class *c, uint32_t item);

static inline uint32_t item_length(const struct class *c, uint32_t item)
{
	return class_item(c, item)->pkt.length;
}

void list_put(const struct class *c, struct list *list, uint32_t item);
uint32_t list_take(const struct class *c, struct list *list);

/* A packet was marked instead of dropped. */
void class_count_marked(struct class *c);

/* Drop a packet that is in no list any more. late: it would have missed its slot. */
void class_drop(struct class *c, uint32_t item, bool late);

/*
 * Whether CoDel lets a packet leave that was taken from a list with `left` bytes after it. False:
 * drop it, unless it could be marked.
 */
bool codel_passes(struct codel *codel, const struct wire_class *plan, uint64_t now, uint64_t since,
		  uint64_t left);

/* CoDel on one list: the next packet, or ITEM_NONE. */
uint32_t codel_take(struct class *c, struct codel *codel, struct list *list, uint64_t now);

extern const struct discipline fifo_discipline, codel_discipline, fair_discipline, slot_discipline;

/*
 * How classes share the port. pick returns the class that sends next, of those that wait, or
 * CLASS_NONE; *wait is then the ns until one may. waiting and charge tell it what happens: a class
 * has its first packet, and a packet of so many bytes has left. init and waiting may be NULL.
 */
struct sharing {
	bool peeks; /* it must know the next packet's length */
	void (*init)(struct scheduler *s);
	void (*waiting)(struct class *c, uint64_t now);
	uint32_t (*pick)(struct scheduler *s, uint64_t now, uint64_t *wait);
	void (*charge)(struct class *c, uint32_t bytes, uint64_t now);
};

extern const struct sharing strict_sharing, htb_sharing, hfsc_sharing;

#endif
