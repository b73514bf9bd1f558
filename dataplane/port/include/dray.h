/* SPDX-License-Identifier: Apache-2.0 */
/* libdray: a virtual port that keeps its name, addresses, MTU and queues on any transport. */
#ifndef DRAY_H
#define DRAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Threads. Each queue has a sending side (tx_alloc, tx_burst) and a receiving side (rx_burst). Only
 * one thread may use a side at a time. The caller may hand a side to another thread, with its own
 * synchronisation. Two threads in one side at once are misuse. If the library notices, the second
 * call does nothing, returns 0, and is counted. Any thread may call dray_release, dray_service,
 * dray_info, dray_stats, dray_events and dray_fd.
 *
 * Traffic classes. The broker may order that what the port sends waits in queues, at the rates of
 * its classes (PROTOCOL.md, section 12). A thread of the library, named dray-pacer, then sends what
 * is due while the application does not call.
 *
 * Processes. A child of fork() must not use the port: its calls return -EBADF or 0. The child
 * inherits no shared memory, and exec() closes every descriptor. Until the child calls exec or
 * ends, it keeps descriptors open, so the peer does not notice if this process dies. SIGSTOP stops
 * only this process: the peer runs out of buffers, and continues when the process does.
 *
 * Payload belongs to the peer, which may change it while it is read. An application that parses
 * hostile payload must copy it first, or open the port with DRAY_RX_COPY.
 *
 * Functions return 0 or -errno; bursts return a number of packets.
 */

/*
 * Sizes. dray_options, dray_info and dray_stats begin with their size, which the caller sets to
 * sizeof. Later versions add fields at the end, and an application and a library of different
 * versions work together. An older library ignores an unknown option that is 0, refuses any other
 * with -E2BIG, and sets unknown results to 0. A newer library uses the defaults of missing options,
 * and writes only the results that fit. No size exceeds 4096 bytes.
 */

struct dray_port;
struct dray_owner;

#define DRAY_MAX_QUEUES 16
#define DRAY_MAX_MESSAGE (4u << 20) /* bytes; not every link has buffers that large */
#define DRAY_MIN_HEADROOM 128	    /* bytes before the data of a new buffer, at least */

/* What an idle port does. */
enum dray_mode {
	DRAY_MODE_BUSY = 0,	/* polls; dray_wait spins; the peer never has to wake it */
	DRAY_MODE_ADAPTIVE = 1, /* polls for a while, then sleeps: see spin_us */
	DRAY_MODE_SLEEPING = 2, /* sleeps as soon as it is idle */
};

enum dray_open_flags {
	DRAY_RX_COPY = 1u << 0,	       /* deliver private copies, which the peer cannot change */
	DRAY_SERVICE_THREAD = 1u << 1, /* a thread of the library calls dray_service */
};

/*
 * Options of dray_open. Begin with `struct dray_options o = { .size = sizeof(o) };`. In every field
 * 0 means the default.
 */
struct dray_options {
	size_t size;
	const char *directory; /* broker's sockets; default: $DRAY_PORTS or /run/dray/ports */
	uint32_t queues;       /* used at most, up to DRAY_MAX_QUEUES; default: all the port's */
	uint32_t mode;	       /* enum dray_mode */
	uint32_t flags;	       /* enum dray_open_flags */
	uint32_t timeout_ms;   /* for the broker's answer; default 10000 */
	/*
	 * Adaptive: microseconds of polling before sleep. Default: from 0 to 50, as learned from
	 * when packets came. It polls for the whole 50 while they mostly come sooner than that, and
	 * sleeps at once while they mostly come later.
	 */
	uint32_t spin_us;
	uint32_t reserved; /* 0; an option of a newer library is -E2BIG here too */
};

/*
 * Open the port `name`: 1 to 15 of a-z A-Z 0-9 . _ -
 * Returns when the broker has answered. The peer may come later (see dray_info, dray_events).
 *
 * Errors: -EINVAL name or options; -E2BIG an option that this library does not know; -ENOENT,
 * -ECONNREFUSED no such port, or no broker; -ETIMEDOUT no answer in time; -EBUSY the port is open
 * elsewhere; -EPROTO, -EPROTONOSUPPORT the broker speaks another protocol; -ENOMEM.
 */
int dray_open(const char *name, const struct dray_options *options, struct dray_port **port);

/*
 * Close the port. No other call on this port may run meanwhile, and only dray_release may follow:
 * buffers that the application still has stay readable until it releases them. Packets that wait in
 * the queues of traffic classes are dropped.
 */
int dray_close(struct dray_port *port);

enum dray_link_state {
	DRAY_LINK_DOWN = 0, /* no peer */
	DRAY_LINK_UP = 1,
};

enum dray_link_kind {
	DRAY_LINK_NONE = 0,
	DRAY_LINK_SHM = 1,
	DRAY_LINK_NETDEV = 2,
};

/*
 * Identity and state of a port. Set size first. The fields up to `queues` never change while the
 * port is open.
 */
struct dray_info {
	size_t size;
	char name[16];
	uint8_t mac[6];
	uint8_t ip4_prefix; /* length; 0: no address */
	uint8_t ip6_prefix;
	uint8_t ip4[4]; /* network order */
	uint32_t mtu;	/* bytes of layer 3 */
	uint8_t ip6[16];
	uint32_t queues; /* of the port */

	uint32_t queues_in_use; /* on the current link: senders hash over these */
	uint32_t state;		/* enum dray_link_state */
	uint32_t kind;		/* enum dray_link_kind */
	uint32_t generation;
	uint32_t broker;       /* 1: connected to the broker */
	uint32_t packet_max;   /* bytes that a packet buffer takes */
	uint32_t message_max;  /* bytes that a message buffer takes; 0: none on this link */
	uint64_t tick_hz;      /* of the clock of latency histograms */
	uint32_t packet_slots; /* packet buffers of a sending queue on the current link */
	uint32_t reserved;
};

/* Errors: -EINVAL size too small; -E2BIG size over 4096; -EBADF no port, or used after fork. */
int dray_info(struct dray_port *port, struct dray_info *info);

enum dray_pkt_flags {
	DRAY_PKT_CSUM_NEEDED = 0x02, /* the transport checksum is not filled in */
	DRAY_PKT_CSUM_GOOD = 0x04,   /* the sender vouches for the checksums */
	DRAY_PKT_VLAN = 0x08,	     /* vlan is valid */
	DRAY_PKT_HASH = 0x10,	     /* hash is valid */
};

/*
 * One packet or message. Between tx_alloc and tx_burst the application writes `length` bytes at
 * `data`, and sets `length`. It may move `data` (dray_pkt_push, dray_pkt_pull), and set meta,
 * flags, vlan and hash. The other fields belong to the library.
 */
struct dray_pkt {
	void *data;
	struct dray_owner *owner;
	uint32_t index;
	uint32_t length;   /* bytes */
	uint16_t vlan;	   /* TCI, if DRAY_PKT_VLAN is set */
	uint16_t flags;	   /* enum dray_pkt_flags */
	uint32_t meta;	   /* 32 bits for the application, carried unchanged */
	uint32_t room;	   /* bytes from data to the end of the buffer */
	uint32_t headroom; /* bytes before data that may be written */
	uint32_t hash;	   /* if DRAY_PKT_HASH is set */
	uint32_t reserved;
};

/* Prepend n bytes. Returns the new beginning, or NULL if there is too little headroom. */
static inline void *dray_pkt_push(struct dray_pkt *pkt, uint32_t n)
{
	if (n > pkt->headroom)
		return NULL;
	pkt->data = (uint8_t *)pkt->data - n;
	pkt->headroom -= n;
	pkt->room += n;
	pkt->length += n;
	return pkt->data;
}

/* Drop n bytes at the beginning. Returns the new beginning, or NULL if the packet is shorter. */
static inline void *dray_pkt_pull(struct dray_pkt *pkt, uint32_t n)
{
	if (n > pkt->length)
		return NULL;
	pkt->data = (uint8_t *)pkt->data + n;
	pkt->headroom += n;
	pkt->room -= n;
	pkt->length -= n;
	return pkt->data;
}

/*
 * Get n empty buffers of at least `size` bytes each, with length 0: packet buffers if `size` fits
 * into one, message buffers otherwise. Returns how many. It never waits: it returns fewer if the
 * peer holds the others, or the link is down. If the port has several traffic classes, and packets
 * that wait have the others, it drops some of the longest queue.
 */
unsigned dray_tx_alloc(struct dray_port *port, unsigned queue, struct dray_pkt *pkts, unsigned n,
		       uint32_t size);

/*
 * Publish n packets, in order. Returns how many, from the first, no longer belong to the caller.
 * Buffers of this queue are published in place; others (received, or allocated before a rebind) are
 * copied once and released. A packet that cannot be sent at all (length 0, too long, no link) is
 * consumed, and counted as tx_dropped or misuse. If no buffer is free to copy to, the call stops
 * and returns fewer.
 *
 * If the port has traffic classes, packets may wait in their queues, and leave in another order.
 * One that a queue drops counts as tx_dropped; one that waits counts as sent only when it leaves.
 */
unsigned dray_tx_burst(struct dray_port *port, unsigned queue, struct dray_pkt *pkts, unsigned n);

/*
 * Take up to n packets, in order. Returns how many. Each belongs to the caller until dray_release
 * (or dray_tx_burst).
 */
unsigned dray_rx_burst(struct dray_port *port, unsigned queue, struct dray_pkt *pkts, unsigned n);

/*
 * Give back buffers that were received, or allocated and not sent: in any order, from any thread,
 * even after dray_close. If that is not the queue's thread, the buffers reach the peer at the next
 * call of the queue's thread. If that thread sleeps, in dray_wait or on a descriptor, it is woken
 * for that. Giving a buffer back twice is counted as misuse.
 */
void dray_release(struct dray_pkt *pkts, unsigned n);

enum dray_wait_for {
	DRAY_WAIT_RX = 1u << 0,	     /* a packet to take */
	DRAY_WAIT_TX = 1u << 1,	     /* a packet buffer to allocate */
	DRAY_WAIT_EVENT = 1u << 2,   /* an event for dray_events */
	DRAY_WAIT_MESSAGE = 1u << 3, /* a message buffer to allocate */
	/* another thread serves the other side of the queue; see dray_wait */
	DRAY_WAIT_ONE_SIDE = 1u << 4,
};

/*
 * Wait until any of `what` holds on a queue, for at most timeout_ms (-1: for ever). Calls
 * dray_service meanwhile, also for other ports of this process whose links are down: each end of
 * two links may first wait for another one. Counts as a call of both sides of the queue. If
 * dray_rx_burst was not called for a second, it drops packets that dead peers have left, except
 * those of the last four generations.
 *
 * With DRAY_WAIT_ONE_SIDE the call counts as one of a single side: of the sending side if `what`
 * has DRAY_WAIT_TX or DRAY_WAIT_MESSAGE, otherwise of the receiving side. So two threads can sleep
 * on one queue, one on each side. The thread of the receiving side may also sleep on dray_fd or
 * dray_queue_fd. Use it only if another thread receives: what that side has to do, for example to
 * return buffers that other threads released, is left to that thread.
 *
 * Returns the bits that hold, or 0 after the time-out. Errors: -EINVAL queue, or what, also
 * DRAY_WAIT_RX together with DRAY_WAIT_TX or DRAY_WAIT_MESSAGE for one side; -EBADF; -EINTR a
 * signal.
 */
int dray_wait(struct dray_port *port, unsigned queue, unsigned what, int timeout_ms);

/*
 * A descriptor for poll or epoll. It stays the same while the port is open, and only dray_close may
 * close it. When it is readable, call dray_service, then dray_rx_burst on each queue until it
 * returns 0, which asks the peer for the next wake-up. It is for DRAY_MODE_SLEEPING and
 * DRAY_MODE_ADAPTIVE; the latter asks only after a queue was empty for its polling time, at most
 * spin_us: see dray_may_sleep. dray_wait cancels that wake-up request. Before polling again, call
 * dray_rx_burst until it returns 0. An event, and buffers that another thread released, make it
 * readable too. Errors: -ENOTSUP in busy mode; -EBADF.
 */
int dray_fd(struct dray_port *port);

/*
 * Whether the last dray_rx_burst of a queue, which returned 0, asked for a wake-up: 1, so its
 * thread may sleep on dray_fd or dray_queue_fd; or 0, so it should poll on. Only the thread of the
 * receiving side may call it. Errors: -ENOTSUP in busy mode; -EINVAL queue; -EBADF.
 */
int dray_may_sleep(struct dray_port *port, unsigned queue);

/*
 * As dray_fd, but for the control plane alone, and in every mode. Readable means that dray_service
 * has something to do: the broker sent a message, or the peer is gone. Packets never make it
 * readable. Errors: -EBADF, -EMFILE, -ENOMEM.
 */
int dray_event_fd(struct dray_port *port);

/*
 * As dray_fd, but for the packets of one queue alone. Errors: -ENOTSUP in busy mode; -EINVAL queue;
 * -EBADF, -EMFILE, -ENOMEM.
 */
int dray_queue_fd(struct dray_port *port, unsigned queue);

/*
 * Handle what is due on the control plane, and return at once: messages of the broker, a new
 * generation, the death of the peer, telemetry. Call it at least every 100 ms, or open with
 * DRAY_SERVICE_THREAD. Returns how many events dray_events can return now, or -EBADF.
 */
int dray_service(struct dray_port *port);

/* Violations by a peer (PROTOCOL.md, section 7). */
enum dray_violation {
	DRAY_BAD_RING_INDEX = 0,
	DRAY_BAD_REGION,
	DRAY_BAD_SLOT,
	DRAY_BAD_DOUBLE,
	DRAY_BAD_BOUNDS,
	DRAY_BAD_FLAGS,
	DRAY_BAD_STAMP,
	DRAY_BAD_RETURN_INDEX,
	DRAY_BAD_RETURN_SLOT,
	DRAY_BAD_RETURN_FORGED,
	DRAY_BAD_HOLD,
	DRAY_BAD_BELL,
	DRAY_VIOLATIONS
};

/* Counters since dray_open, over all generations. Set size first. */
struct dray_stats {
	size_t size;
	uint64_t tx_packets, tx_bytes;
	uint64_t rx_packets, rx_bytes;
	uint64_t tx_no_buffer; /* buffers that tx_alloc could not provide */
	uint64_t tx_dropped; /* consumed by tx_burst and not sent: no link, too long, or a queue */
	uint64_t tx_copied;  /* copied, since the buffer was not of this sending queue */
	uint64_t rx_dropped; /* over the hold quota, or no memory to copy to */
	uint64_t rx_copied;  /* delivered in private memory */
	uint64_t misuse;     /* calls that broke the rules above, as far as noticed */
	uint64_t violations[DRAY_VIOLATIONS];
	uint64_t stamps; /* packets whose one-way latency was measured */
	uint64_t held;	 /* buffers that the application has now */
	uint64_t maps;	 /* generations still mapped: current, or with buffers out */
};

#define DRAY_ALL_QUEUES (~0u)

/*
 * Statistics of one queue, or DRAY_ALL_QUEUES. Errors: -EINVAL queue, or size too small; -E2BIG
 * size over 4096; -EBADF.
 */
int dray_stats(struct dray_port *port, unsigned queue, struct dray_stats *stats);

enum dray_event_type {
	DRAY_EVENT_PEER_UP = 1,	   /* a generation is live */
	DRAY_EVENT_PEER_DOWN = 2,  /* the peer died or left */
	DRAY_EVENT_REBIND = 3,	   /* the link moved to another generation, and was not down */
	DRAY_EVENT_PEER_HOLDS = 4, /* the peer has kept all buffers of a queue for over 1 s */
	DRAY_EVENT_BROKER_LOST = 5,
	DRAY_EVENT_BROKER_BACK = 6,
	DRAY_EVENT_ERROR = 7, /* setting up a generation failed; error says why */
};

struct dray_event {
	uint32_t type; /* enum dray_event_type */
	uint32_t generation;
	uint32_t kind; /* enum dray_link_kind, of that generation */
	int32_t error; /* -errno of DRAY_EVENT_ERROR */
};

/*
 * Take up to n events, oldest first. The library keeps the latest 64. Returns how many, or -EBADF.
 */
int dray_events(struct dray_port *port, struct dray_event *events, unsigned n);

/* The meaning of 0 or -errno from this library, as a sentence. Never NULL. */
const char *dray_strerror(int error);

/* The version of the loaded library, "major.minor.patch". */
const char *dray_version(void);

#ifdef __cplusplus
}
#endif
#endif
