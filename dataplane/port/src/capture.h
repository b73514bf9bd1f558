/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of the packets of a port, for a capture: PROTOCOL.md, section 11. */
#ifndef DRAY_CAPTURE_H
#define DRAY_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "dray.h"
#include "layout.h"

struct capture;

/* Where one direction of one queue writes; its thread alone uses it. */
struct capture_ring {
	_Alignas(LAYOUT_ALONE) struct capture *capture;
	struct capture_words *words;
	uint8_t *slots;
	uint32_t slot_count, slot_size, snaplen;
	uint32_t tail;	 /* records published */
	uint32_t filled; /* records written behind them */
	uint64_t lost;
};

struct capture {
	struct capture *next;  /* of the port's */
	_Atomic uint32_t refs; /* one per direction that uses a ring of it */
	void *memory;
	size_t size;
	uint32_t queues;
	struct capture_ring rings[2 * DRAY_MAX_QUEUES];
};

/*
 * Check what a start asks for, and derive the size of one ring and of the memfd. 0 or -EINVAL; the
 * size asked for is not compared.
 */
int capture_derive(const struct wire_capture *start, uint64_t *ring_size, uint64_t *size);

/*
 * Map a capture memfd; the descriptor stays the caller's. `start` was checked.
 * -EPROTO another size, or pages are missing; -EPERM seals are missing; -ENOMEM, other errors of
 * mmap.
 */
int capture_map(const struct wire_capture *start, int fd, struct capture **capture);

/* No direction may use a ring of it any more. */
void capture_free(struct capture *capture);

static inline void capture_get(struct capture *capture)
{
	atomic_fetch_add_explicit(&capture->refs, 1, memory_order_relaxed);
}

static inline void capture_put(struct capture *capture)
{
	/* release: pairs with the acquire in capture_unused. */
	atomic_fetch_sub_explicit(&capture->refs, 1, memory_order_release);
}

static inline bool capture_unused(const struct capture *capture)
{
	/*
	 * acquire: pairs with the release in capture_put: the memory is unmapped after the last
	 * write.
	 */
	return atomic_load_explicit(&capture->refs, memory_order_acquire) == 0;
}

static inline struct capture_ring *capture_ring_of(struct capture *capture, unsigned queue,
						   bool sending)
{
	return &capture->rings[2 * queue + !sending];
}

/*
 * Write up to n packets behind the published ones. Never waits; capture_ring_publish counts packets
 * that found no room.
 */
void capture_ring_fill(struct capture_ring *ring, const struct dray_pkt *pkts, unsigned n);

/* Publish the first n of those packets, and forget the others. */
void capture_ring_publish(struct capture_ring *ring, unsigned n);

#endif
