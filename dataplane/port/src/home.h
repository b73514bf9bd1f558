/* SPDX-License-Identifier: Apache-2.0 */
/* A home is what lends buffers to the application, and gets them back: a lane, or a pool of private memory. */
#ifndef DRAY_HOME_H
#define DRAY_HOME_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "dray.h"
#include "layout.h"

/* What the checks of the data path cost is measured by a program that is built without them: bench/meson.build. The library always has them. */
#ifdef DRAY_BENCH_UNCHECKED
#define UNCHECKED 1
#else
#define UNCHECKED 0
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Fetch a line in order to write to it. The compilers' own builtin fetches it for reading where the CPU might be an old one. */
static inline void prefetch_write(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

static_assert(sizeof(struct dray_pkt) == 48 && offsetof(struct dray_pkt, flags) == 16 && offsetof(struct dray_pkt, vlan) == 18 &&
		      offsetof(struct dray_pkt, hash) == 20,
	      "fields of a packet that are written together");

/* Fill a packet's struct. Three fields in one store: the CPU's store buffer is what a burst fills first. */
static inline void pkt_set(struct dray_pkt *p, void *data, uint32_t length, uint32_t room, uint32_t flags, uint32_t meta, uint32_t headroom,
			   struct dray_home *home, uint32_t index)
{
	uint64_t flags_vlan_hash = flags;

	p->data = data;
	p->length = length;
	p->room = room;
	memcpy(&p->flags, &flags_vlan_hash, sizeof(flags_vlan_hash));
	p->meta = meta;
	p->headroom = headroom;
	p->home = home;
	p->index = index;
}

struct attachment;

/* Counters of one side of one queue. Its thread writes; any thread reads. */
struct counters {
	_Alignas(LAYOUT_ALONE) _Atomic uint64_t n[COUNTERS];
	_Atomic uint64_t stamps;
	_Atomic uint64_t depth;
};

static inline void count_add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline void count(struct counters *c, enum counter which, uint64_t n)
{
	count_add(&c->n[which], n);
}

static inline void violation(struct counters *c, enum dray_violation kind)
{
	count_add(&c->n[COUNT_VIOLATION + kind], 1);
}

/*
 * What a home can do; chosen when it is made. alloc and send are those of the sending side, recv that of the receiving side.
 * send and give_back consume packets from the first on while they are of this home, and return how many; what comes back loses its home, so
 * that a second release of the same struct does nothing.
 * ready says whether recv, or alloc, would give something. arm asks the peer to ring, then does as ready; disarm takes that back; both are
 * NULL where the queue's descriptor does it alone.
 */
struct home_ops {
	unsigned (*alloc)(struct dray_home *home, struct dray_pkt *pkts, unsigned n, uint32_t size);
	unsigned (*send)(struct dray_home *home, struct dray_pkt *pkts, unsigned n);
	unsigned (*recv)(struct dray_home *home, struct dray_pkt *pkts, unsigned n);
	unsigned (*give_back)(struct dray_home *home, struct dray_pkt *pkts, unsigned n);
	bool (*ready)(struct dray_home *home);
	bool (*arm)(struct dray_home *home);
	void (*disarm)(struct dray_home *home);
};

struct dray_home {
	const struct home_ops *ops;
	_Atomic uintptr_t owner; /* thread_self() of the side's thread */
	_Atomic uint32_t held;	 /* buffers that the application has; its owner writes */
	uint32_t slots;
	_Atomic bool retired; /* its side has left; the reference goes with the last buffer */
	bool adopted; /* a side took it */
	bool settled;
	_Atomic bool orphan;	    /* closed: whoever releases does the owner's work */
	_Atomic uint32_t foreign;   /* head of the list of what other threads gave back: index + 1 */
	_Atomic uint32_t *next;	    /* one per slot: link of that list; HOME_UNLINKED off it */
	struct attachment *attachment;
	struct counters *counters;
	struct dray_home *draining; /* next of the homes that their side has left */
};

#define HOME_UNLINKED UINT32_MAX

extern _Thread_local char thread_mark __attribute__((tls_model("initial-exec")));

static inline uintptr_t thread_self(void)
{
	return (uintptr_t)&thread_mark;
}

int home_init(struct dray_home *home, const struct home_ops *ops, uint32_t slots, struct attachment *attachment,
	      struct counters *counters);
void home_destroy(struct dray_home *home);

static inline uint32_t home_held(const struct dray_home *home)
{
	return atomic_load_explicit(&home->held, memory_order_relaxed);
}

static inline void home_lend(struct dray_home *home, int32_t n)
{
	atomic_store_explicit(&home->held, home_held(home) + (uint32_t)n, memory_order_relaxed);
}

/* Take back what other threads released. Only its owner calls it. */
void home_drain_foreign(struct dray_home *home);

static inline void home_drain(struct dray_home *home)
{
	if (unlikely(atomic_load_explicit(&home->foreign, memory_order_relaxed)))
		home_drain_foreign(home);
}

/* The side leaves: its reference goes at once, or with the last buffer. */
void home_retire(struct dray_home *home);

/* Nobody owns it any more: the port is being closed. */
void home_orphan(struct dray_home *home);

/* Drop the side's reference if it has left and every buffer is back. */
void home_settle(struct dray_home *home);

#endif
