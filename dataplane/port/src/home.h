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

/* ThreadSanitizer takes a plain store to a shared word for a race, where a peer that breaks the rules reads or writes it meanwhile. */
#if defined(__SANITIZE_THREAD__)
#define SEES_ATOMICS_ONLY
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SEES_ATOMICS_ONLY
#endif
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Keep the compiler from knowing what is in a variable. */
#define HIDE(x) __asm__("" : "+r"(x))

/* Fetch a line in order to write to it. The compilers' own builtin fetches it for reading where the CPU might be an old one. */
static inline void prefetch_write(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

/*
 * The fields of a packet stand as in its descriptor (layout.h): index and length are its first word where the region is that of packets; flags and meta
 * stand in the second as they do there, with vlan in the place of the offset.
 */
static_assert(sizeof(struct dray_pkt) == 48 && offsetof(struct dray_pkt, home) == 8 && offsetof(struct dray_pkt, index) == 16 &&
		      offsetof(struct dray_pkt, length) == 20 && offsetof(struct dray_pkt, vlan) == 24 &&
		      offsetof(struct dray_pkt, flags) == 26 && offsetof(struct dray_pkt, meta) == 28 &&
		      offsetof(struct dray_pkt, room) == 32 && offsetof(struct dray_pkt, headroom) == 36 &&
		      offsetof(struct dray_pkt, hash) == 40,
	      "fields of a packet that are written together");

/*
 * 16 bytes in one store. Stores leave the CPU in order, and wait there for the lines that the peer has: it is their number that a burst is bound by, as much
 * as that of instructions.
 */
typedef uint64_t words __attribute__((vector_size(16)));

static inline void store_words(void *to, words w)
{
	memcpy(to, &w, sizeof(w));
}

static inline void store_word(void *to, uint64_t w)
{
	memcpy(to, &w, sizeof(w));
}

/* Fill a packet's struct but for what comes from a descriptor: index to meta. */
static inline void pkt_set(struct dray_pkt *p, void *data, struct dray_home *home, uint64_t room_headroom)
{
	store_words(&p->data, (words){(uintptr_t)data, 0} | (words){0, (uintptr_t)home});
	store_words(&p->room, (words){room_headroom, 0});
}

struct generation;

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

enum waker_state { WAKER_AWAKE = 0, WAKER_ASLEEP, WAKER_RUNG };

/* Wakes the thread that owns a queue, and sleeps, when another one has released what is the queue's to return. */
struct waker {
	_Atomic uint32_t state; /* ASLEEP: or about to be. Whoever makes RUNG of it rings */
	uint32_t owed;		/* the owner's: rings that could not be read yet */
	int fd;			/* an eventfd; -1: busy mode, which never sleeps */
};

/* The owner does not sleep any more. Only its thread calls this. */
void waker_awake(struct waker *waker);

/*
 * Between this and the sleep the owner looks once more at what was released. seq_cst: pairs with release_foreign; either the owner sees what was released, or
 * who released it sees that the owner sleeps.
 */
static inline void waker_sleep(struct waker *waker)
{
	if (waker->fd < 0)
		return;
	waker_awake(waker); /* a ring that is not read would keep the descriptor readable */
	atomic_store_explicit(&waker->state, WAKER_ASLEEP, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

/* Whether somebody rang since waker_sleep: then the owner is awake. Only its thread calls it. */
static inline bool waker_rang(struct waker *waker)
{
	if (!waker->owed && atomic_load_explicit(&waker->state, memory_order_relaxed) != WAKER_RUNG)
		return false;
	waker_awake(waker);
	return true;
}

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
	struct generation *generation;
	struct waker *waker; /* of the queue whose side took it; NULL: nobody sleeps for what comes back */
	struct counters *counters;
	struct dray_home *draining; /* next of the homes that their side has left */
};

#define HOME_UNLINKED UINT32_MAX

extern _Thread_local char thread_mark __attribute__((tls_model("initial-exec")));

static inline uintptr_t thread_self(void)
{
	return (uintptr_t)&thread_mark;
}

int home_init(struct dray_home *home, const struct home_ops *ops, uint32_t slots, struct generation *gen,
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

/* The side leaves, and nobody owns it any more: whatever thread gives back what is still out does the owner's work. */
void home_orphan(struct dray_home *home);

#endif
