/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A buffer owner: it lends buffers to the application and takes them back. It is a lane, or a pool
 * of private memory.
 */
#ifndef DRAY_OWNER_H
#define DRAY_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "dray.h"
#include "layout.h"

/*
 * One bench is built without the checks of the data path, to measure their cost
 * (bench/meson.build). The library always has them.
 */
#ifdef DRAY_BENCH_UNCHECKED
#define UNCHECKED 1
#else
#define UNCHECKED 0
#endif

/*
 * ThreadSanitizer reports a plain store to a shared word as a race if a peer that breaks the rules
 * accesses it meanwhile.
 */
#if defined(__SANITIZE_THREAD__)
#define SEES_ATOMICS_ONLY
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SEES_ATOMICS_ONLY
#endif
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Hide the value of a variable from the compiler. */
#define HIDE(x) __asm__("" : "+r"(x))

/*
 * Prefetch a line for writing. The compiler's builtin prefetches for reading if the target CPU may
 * be old.
 */
static inline void prefetch_write(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

/*
 * The fields of a packet have the order of its descriptor (layout.h). index and length are its
 * first word, if the region is packets. flags and meta are in the second word, as in the
 * descriptor, with vlan in the place of the offset.
 */
static_assert(
	sizeof(struct dray_pkt) == 48 && offsetof(struct dray_pkt, owner) == 8 &&
		offsetof(struct dray_pkt, index) == 16 && offsetof(struct dray_pkt, length) == 20 &&
		offsetof(struct dray_pkt, vlan) == 24 && offsetof(struct dray_pkt, flags) == 26 &&
		offsetof(struct dray_pkt, meta) == 28 && offsetof(struct dray_pkt, room) == 32 &&
		offsetof(struct dray_pkt, headroom) == 36 && offsetof(struct dray_pkt, hash) == 40,
	"fields of a packet that are written together");

/*
 * 16 bytes in one store. Stores leave the CPU in order, and wait there for lines that the peer has.
 * So a burst is bound by its number of stores as much as by its number of instructions.
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

/* Fill a packet's struct, except the fields from index to meta, which come from a descriptor. */
static inline void pkt_set(struct dray_pkt *p, void *data, struct dray_owner *owner,
			   uint64_t room_headroom)
{
	store_words(&p->data, (words){(uintptr_t)data, 0} | (words){0, (uintptr_t)owner});
	store_words(&p->room, (words){room_headroom, 0});
}

struct generation;

/* Counters of one direction of one queue. Its thread writes; any thread reads. */
struct counters {
	_Alignas(LAYOUT_ALONE) _Atomic uint64_t n[COUNTERS];
	_Atomic uint64_t stamps;
	_Atomic uint64_t depth;
};

static inline void count_add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
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
 * The operations of an owner, chosen when it is made. A sending owner has alloc and send, a
 * receiving owner has recv. send and give_back consume packets from the first on, as long as they
 * belong to this owner, and return how many. A packet that comes back loses its owner, so that a
 * second release of the same struct does nothing. ready says whether recv, or alloc, would return
 * something. arm asks the peer to ring, then does as ready; disarm cancels that. Both are NULL if
 * the queue's descriptor alone wakes the thread.
 */
struct owner_ops {
	unsigned (*alloc)(struct dray_owner *owner, struct dray_pkt *pkts, unsigned n,
			  uint32_t size);
	unsigned (*send)(struct dray_owner *owner, struct dray_pkt *pkts, unsigned n);
	unsigned (*recv)(struct dray_owner *owner, struct dray_pkt *pkts, unsigned n);
	unsigned (*give_back)(struct dray_owner *owner, struct dray_pkt *pkts, unsigned n);
	bool (*ready)(struct dray_owner *owner);
	/* after `ready` or `arm`; NULL: it has no message buffers */
	bool (*message_ready)(struct dray_owner *owner);
	bool (*arm)(struct dray_owner *owner);
	void (*disarm)(struct dray_owner *owner);
};

enum waker_state { WAKER_AWAKE = 0, WAKER_ASLEEP, WAKER_RUNG };

/*
 * Wakes the sleeping thread of a queue when another thread of this process did something for it:
 * released buffers that the queue must return, made another generation current, posted an event, or
 * read the bell that the thread sleeps on.
 */
struct waker {
	/* ASLEEP: or about to be. The thread that changes it to RUNG rings */
	_Atomic uint32_t state;
	uint32_t owed; /* of the sleeping thread: rings that could not be read yet */
	int fd;	       /* an eventfd; -1: busy mode, which never sleeps */
};

/* The thread does not sleep any more. Only that thread calls this. */
void waker_awake(struct waker *waker);

/*
 * Between this call and its sleep the thread looks once more at everything that it is woken for.
 * seq_cst: pairs with release_foreign and waker_wake; either this thread sees what the other one
 * did, or the other one sees that this thread sleeps.
 */
static inline void waker_sleep(struct waker *waker)
{
	if (waker->fd < 0)
		return;
	waker_awake(waker); /* a ring that is not read would keep the descriptor readable */
	atomic_store_explicit(&waker->state, WAKER_ASLEEP, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

/* After waker_sleep: whether the thread may sleep. It may not after a ring, or waker_awake. */
static inline bool waker_asleep(const struct waker *waker)
{
	return waker->fd < 0 ||
	       atomic_load_explicit(&waker->state, memory_order_relaxed) == WAKER_ASLEEP;
}

/* Wake the thread if it sleeps, or is about to. Call it after what the thread is to see. */
void waker_wake(struct waker *waker);

/*
 * Whether the waker rang since waker_sleep: if so, the queue's thread is awake again. Only it calls
 * it.
 */
static inline bool waker_rang(struct waker *waker)
{
	if (!waker->owed && atomic_load_explicit(&waker->state, memory_order_relaxed) != WAKER_RUNG)
		return false;
	waker_awake(waker);
	return true;
}

struct dray_owner {
	const struct owner_ops *ops;
	_Atomic uintptr_t thread; /* thread_self() of the thread that uses the queue; 0: none */
	_Atomic uint32_t held;	  /* buffers that the application has; the queue's thread writes */
	uint32_t slots;
	_Atomic bool retired; /* left; the reference goes with the last buffer */
	bool adopted;	      /* a direction uses it, or did */
	bool settled;
	_Atomic bool orphan; /* closed: any thread that releases does the queue's thread's work */
	/* head of the list of what other threads gave back: index + 1 */
	_Atomic uint32_t foreign;
	_Atomic uint32_t *next; /* one per slot: link of that list; OWNER_UNLINKED off it */
	struct generation *generation;
	struct waker *waker; /* of the queue that adopted it; NULL: no thread sleeps */
	/* sending: of a thread that waits for this side alone. While it sleeps, it is rung instead
	 */
	struct waker *alone;
	struct counters *counters;
	struct dray_owner *draining; /* next owner that the direction has left */
};

#define OWNER_UNLINKED UINT32_MAX

extern _Thread_local char thread_mark __attribute__((tls_model("initial-exec")));

static inline uintptr_t thread_self(void)
{
	return (uintptr_t)&thread_mark;
}

int owner_init(struct dray_owner *owner, const struct owner_ops *ops, uint32_t slots,
	       struct generation *gen, struct counters *counters);
void owner_destroy(struct dray_owner *owner);

static inline uint32_t owner_held(const struct dray_owner *owner)
{
	return atomic_load_explicit(&owner->held, memory_order_relaxed);
}

static inline void owner_lend(struct dray_owner *owner, int32_t n)
{
	atomic_store_explicit(&owner->held, owner_held(owner) + (uint32_t)n, memory_order_relaxed);
}

/* Take back what other threads released. Only the queue's thread calls it. */
void owner_drain_foreign(struct dray_owner *owner);

static inline void owner_drain(struct dray_owner *owner)
{
	if (unlikely(atomic_load_explicit(&owner->foreign, memory_order_relaxed)))
		owner_drain_foreign(owner);
}

/* The direction leaves: its reference goes at once, or with the last buffer. */
void owner_retire(struct dray_owner *owner);

/*
 * The direction leaves, and the owner has no thread any more: any thread that gives back a buffer
 * does that thread's work.
 */
void owner_orphan(struct dray_owner *owner);

#endif
