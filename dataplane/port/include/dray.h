/* SPDX-License-Identifier: Apache-2.0 */
/* libdray: a virtual port that keeps its name, addresses, MTU and queues whatever transport is behind it. */
#ifndef DRAY_H
#define DRAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Threads. Each queue has a sending side (tx_alloc, tx_burst) and a receiving side (rx_burst); at any time one thread uses a side. A side may be
 * handed to another thread, with the caller's own synchronisation. Two threads in one side at once is misuse: where it is noticed, the second call
 * does nothing, returns 0, and is counted. dray_release, dray_service, dray_info, dray_stats, dray_events and dray_fd may be called by any thread.
 *
 * Processes. A child of fork() must not use the port: its calls return -EBADF or 0. It inherits neither memory nor anything through exec();
 * until it does exec or ends, it keeps descriptors open by which the peer would notice this process' death.
 * SIGSTOP stops the process and nothing else: the peer runs out of buffers, and goes on when the process does.
 *
 * Payload belongs to the peer. It may change while it is read. An application that parses hostile payload copies what it parses, or
 * opens the port with DRAY_RX_COPY.
 *
 * Errors are 0 or -errno; bursts return how many.
 */

/*
 * Sizes. dray_options, dray_info and dray_stats begin with their size, which the caller sets to sizeof; later versions add fields at the end. An
 * application and a library of different versions work together. A library that knows fewer fields ignores those options that are 0, refuses
 * others with -E2BIG, and sets results that it does not know to 0. A library that knows more takes the defaults, and writes only what fits.
 * No size is over 4096.
 */

struct dray_port;
struct dray_home;

#define DRAY_MAX_QUEUES 16
#define DRAY_MAX_MESSAGE (4u << 20) /* bytes, if the link has message buffers that large */
#define DRAY_MIN_HEADROOM 128	    /* bytes before the data of a new buffer, at least */

/* How a port that has nothing to do spends its time. */
enum dray_mode {
	DRAY_MODE_BUSY = 0,	/* polls; dray_wait spins; the peer never needs to wake it */
	DRAY_MODE_ADAPTIVE = 1, /* polls for spin_us, then sleeps */
	DRAY_MODE_SLEEPING = 2, /* sleeps as soon as there is nothing */
};

enum dray_open_flags {
	DRAY_RX_COPY = 1u << 0,	       /* deliver copies in private memory, which the peer cannot change */
	DRAY_SERVICE_THREAD = 1u << 1, /* a thread of the library calls dray_service */
};

/* Options of dray_open. Begin with `struct dray_options o = { .size = sizeof(o) };`: 0 means the default everywhere. */
struct dray_options {
	size_t size;
	const char *directory; /* of the broker's sockets; default: $DRAY_PORTS, else /run/dray/ports */
	uint32_t queues;       /* that the application will use, at most DRAY_MAX_QUEUES; default: all that the port has */
	uint32_t mode;	       /* enum dray_mode */
	uint32_t flags;	       /* enum dray_open_flags */
	uint32_t timeout_ms;   /* for the broker's answer; default 2000 */
	uint32_t spin_us;      /* adaptive: polling before sleep; default 50 */
};

/*
 * Open the port `name`: 1 to 15 of a-z A-Z 0-9 . _ -
 * Returns when the broker has answered; the peer need not be there yet (see dray_info, dray_events).
 * Errors: -EINVAL name or options; -E2BIG an option that this library does not have; -ENOENT, -ECONNREFUSED no such port, or no broker; -ETIMEDOUT; -EBUSY the port is open elsewhere;
 * -EPROTO, -EPROTONOSUPPORT the broker speaks another protocol; -ENOMEM.
 */
int dray_open(const char *name, const struct dray_options *options, struct dray_port **port);

/*
 * Close the port. No other call of it may run meanwhile, and none may follow but dray_release: buffers that are still out stay
 * readable until they are released.
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

/* What a port is, and how it is. Set size first. The first block never changes while the port is open. */
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

	uint32_t queues_in_use; /* on the present link: senders hash over these */
	uint32_t state;		/* enum dray_link_state */
	uint32_t kind;		/* enum dray_link_kind */
	uint32_t generation;
	uint32_t broker;     /* 1: connected to the broker */
	uint32_t packet_max; /* bytes that a packet buffer takes */
	uint32_t message_max; /* bytes that a message buffer takes; 0: none on this link */
	uint64_t tick_hz;     /* of the clock of latency histograms */
	uint32_t packet_slots; /* packet buffers that a queue of the present link has to send from */
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
 * One packet or message. Between tx_alloc and tx_burst the application writes length bytes from data on, and sets length; it may move
 * data (dray_pkt_push, dray_pkt_pull), and set meta, flags, vlan and hash. The rest is the library's.
 */
struct dray_pkt {
	void *data;
	struct dray_home *home;
	uint32_t index;
	uint32_t length; /* bytes */
	uint16_t vlan;	 /* TCI, where DRAY_PKT_VLAN is set */
	uint16_t flags;	 /* enum dray_pkt_flags */
	uint32_t meta;	 /* 32 bits for the application, carried as they are */
	uint32_t room;	 /* bytes from data to the end of the buffer */
	uint32_t headroom; /* bytes before data that may be written */
	uint32_t hash;	 /* where DRAY_PKT_HASH is set */
	uint32_t reserved;
};

/* Prepend n bytes; returns the new beginning, or NULL where there is not so much headroom. */
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

/* Drop n bytes at the beginning; returns the new beginning, or NULL where there are not so many. */
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
 * Get n empty buffers of at least `size` bytes each (packet buffers where they suffice, message buffers otherwise), with length 0.
 * Returns how many: fewer, and never waits, when the peer holds the others, or the link is down.
 */
unsigned dray_tx_alloc(struct dray_port *port, unsigned queue, struct dray_pkt *pkts, unsigned n, uint32_t size);

/*
 * Publish n packets, in order. Returns how many, from the first, are no longer the caller's. Buffers of this queue are published where they
 * are; others (received, or allocated before a rebind) are copied once and released. What cannot be sent at all (length 0 or too long,
 * no link) is consumed, and counted as tx_dropped or misuse. Where no buffer is free to copy to, it stops and returns fewer.
 */
unsigned dray_tx_burst(struct dray_port *port, unsigned queue, struct dray_pkt *pkts, unsigned n);

/* Take up to n packets, in order. Returns how many. Each is the caller's until dray_release (or dray_tx_burst). */
unsigned dray_rx_burst(struct dray_port *port, unsigned queue, struct dray_pkt *pkts, unsigned n);

/*
 * Give buffers back, received or allocated and not sent, in any order and from any thread, also after dray_close. What another thread
 * than the queue's owner gives back reaches the peer when the owner calls the queue next; an owner that sleeps, in dray_wait or on a descriptor, is woken
 * for that. A buffer given back twice is counted as misuse.
 */
void dray_release(struct dray_pkt *pkts, unsigned n);

enum dray_wait_for {
	DRAY_WAIT_RX = 1u << 0,	   /* a packet to take */
	DRAY_WAIT_TX = 1u << 1,	   /* a packet buffer to allocate */
	DRAY_WAIT_EVENT = 1u << 2, /* an event for dray_events */
};

/*
 * Wait for any of `what` on a queue, up to timeout_ms (-1: for ever). Runs dray_service meanwhile. Counts as a call of both sides of the queue.
 * Returns the bits that hold, 0 after the time-out. Errors: -EINVAL, -EBADF; -EINTR a signal.
 */
int dray_wait(struct dray_port *port, unsigned queue, unsigned what, int timeout_ms);

/*
 * A descriptor for poll or epoll, the same while the port is open; close it with dray_close only. Readable means: call dray_service, then
 * dray_rx_burst on each queue until it returns 0 (which asks the peer to ring again). It is for DRAY_MODE_SLEEPING and DRAY_MODE_ADAPTIVE (which asks
 * when a queue was empty for spin_us).
 * dray_wait takes back what that asked for: after it, poll again only once dray_rx_burst has returned 0 anew.
 * Errors: -ENOTSUP in busy mode; -EBADF.
 */
int dray_fd(struct dray_port *port);

/*
 * As dray_fd, of the control side alone, in every mode: readable means that dray_service has something to do (the broker, the end of the peer). No packet
 * makes it so. Errors: -EBADF, -EMFILE, -ENOMEM.
 */
int dray_event_fd(struct dray_port *port);

/* As dray_fd, of what rings on one queue alone. Errors: -ENOTSUP in busy mode; -EINVAL queue; -EBADF, -EMFILE, -ENOMEM. */
int dray_queue_fd(struct dray_port *port, unsigned queue);

/*
 * Do what is due on the control side, and return at once: the broker's messages, a new generation, the death of the peer, telemetry.
 * Call it at least every 100 ms, or open with DRAY_SERVICE_THREAD. Returns the number of events that wait for dray_events, or -EBADF.
 */
int dray_service(struct dray_port *port);

/* What a peer did wrong (PROTOCOL.md, section 7). */
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
	uint64_t tx_no_buffer; /* buffers asked of tx_alloc and not got */
	uint64_t tx_dropped;   /* consumed by tx_burst and not sent: no link, or too long for it */
	uint64_t tx_copied;    /* sent from a buffer that was not the queue's */
	uint64_t rx_dropped;   /* over the hold quota, or no memory to copy to */
	uint64_t rx_copied;    /* delivered in private memory */
	uint64_t misuse;       /* calls against the rules above, which were noticed */
	uint64_t violations[DRAY_VIOLATIONS];
	uint64_t stamps; /* packets whose one-way latency was measured */
	uint64_t held;	 /* buffers that are with the application now */
	uint64_t maps;	 /* generations whose memory is still mapped: the present one, and those with buffers out */
};

#define DRAY_ALL_QUEUES (~0u)

/* Statistics of one queue, or DRAY_ALL_QUEUES. Errors: -EINVAL queue, or size too small; -E2BIG size over 4096; -EBADF. */
int dray_stats(struct dray_port *port, unsigned queue, struct dray_stats *stats);

enum dray_event_type {
	DRAY_EVENT_PEER_UP = 1,	  /* a generation is live */
	DRAY_EVENT_PEER_DOWN = 2, /* the peer died or left */
	DRAY_EVENT_REBIND = 3,	  /* the link moved to another generation without having been down */
	DRAY_EVENT_PEER_HOLDS = 4, /* the peer keeps all buffers of a queue for over 1 s */
	DRAY_EVENT_BROKER_LOST = 5,
	DRAY_EVENT_BROKER_BACK = 6,
	DRAY_EVENT_ERROR = 7, /* a generation could not be set up; error says why */
};

struct dray_event {
	uint32_t type; /* enum dray_event_type */
	uint32_t generation;
	uint32_t kind;	/* enum dray_link_kind, of that generation */
	int32_t error; /* -errno of DRAY_EVENT_ERROR */
};

/* Take up to n events, oldest first; the 64 latest are kept. Returns how many, or -EBADF. */
int dray_events(struct dray_port *port, struct dray_event *events, unsigned n);

/* What an error of this library means, in a sentence; for 0 or -errno. Never NULL. */
const char *dray_strerror(int error);

/* The version of the library that is loaded, "major.minor.patch". */
const char *dray_version(void);

#ifdef __cplusplus
}
#endif
#endif
