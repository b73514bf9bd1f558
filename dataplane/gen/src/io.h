/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A port as draygen sees it: datagrams in bursts. One table of operations for each kind; one thread
 * uses a port.
 */
#ifndef GEN_IO_H
#define GEN_IO_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "frame.h"
#include "options.h"

enum io_wait { IO_RX = 1u << 0, IO_TX = 1u << 1 };

struct io_link {
	const char *kind; /* NULL: the port has no link to report */
	uint32_t generation;
	bool judges; /* it counts violations of its peer */
	uint64_t violations;
};

struct io;

struct io_ops {
	/*
	 * Get up to n buffers for datagrams of bufs[i].length bytes, the longest of which has
	 * `longest`. Returns how many, from the first; 0 if the port is full.
	 */
	unsigned (*alloc)(struct io *io, unsigned flow, struct io_buf *bufs, unsigned n,
			  uint32_t longest);
	/*
	 * Send n consecutive buffers of the last alloc, after io_write. Returns how many were sent,
	 * from the first; 0 if the port is full; -errno.
	 */
	int (*send)(struct io *io, unsigned flow, struct io_buf *bufs, unsigned n);
	/* Give back buffers of the last alloc that are not sent. */
	void (*discard)(struct io *io, struct io_buf *bufs, unsigned n);
	/*
	 * Take up to n datagrams, never waits. The caller has them until done. Returns how many,
	 * or -errno.
	 */
	int (*receive)(struct io *io, struct io_buf *bufs, unsigned n);
	/*
	 * Send n consecutive buffers of the last receive, with unchanged lengths, back to their
	 * senders. Returns how many could be sent.
	 */
	unsigned (*reply)(struct io *io, struct io_buf *bufs, unsigned n);
	/* The buffers of the last receive may be reused. */
	void (*done)(struct io *io);
	/*
	 * Sleep until one of `what` may be possible, or until that time. May return early. Returns
	 * 0 or -errno.
	 */
	int (*wait)(struct io *io, unsigned what, uint64_t until_ns);
	/*
	 * Background work, called at least every 50 ms. Returns 0 or -errno. NULL: there is none.
	 */
	int (*service)(struct io *io);
	/* Whether there is a peer to send to; does what service does. NULL: always. */
	bool (*has_peer)(struct io *io);
	/*
	 * Packets that the kernel dropped at the port's own receive buffer, so far. NULL: cannot
	 * happen.
	 */
	uint64_t (*drops)(struct io *io);
	void (*link)(struct io *io, struct io_link *link); /* NULL: none */
	void (*close)(struct io *io);
};

/* Ports are structs of their own that begin with this. */
struct io {
	const struct io_ops *ops;
	char name[96];	    /* as --port, with the actual address */
	uint32_t frame_max; /* bytes; for packets that are sent */
	bool frames;	    /* it carries frames; the sent ones have the addresses below */
	struct frame_address address;
	struct frame_template template; /* of the last one */
	bool polls;			/* nothing wakes a waiting thread: it polls */
};

struct packet;

/*
 * As packet_write, with the headers of frames if the port carries frames. `number` is that of the
 * first packet on the schedule, or SLOTS_NO_NUMBER.
 */
void io_write(struct io *io, unsigned flow, uint64_t number, const struct packet *first,
	      const struct io_buf *bufs, unsigned n);

struct io_error {
	char text[256];
};

/* Open the port of the options. NULL: error->text has the reason and the fix. */
struct io *io_open(const struct options *options, struct io_error *error);

/* Wait until each of n ports has a peer, and check that the frames of the options fit. */
bool io_await_peers(struct io *const *ios, unsigned n, const struct options *options,
		    struct io_error *error);
void io_close(struct io *io);

/* The exit status, even if closing the ports fails; -1 until it is known. */
extern volatile sig_atomic_t io_exit_status;

/* Serve n ports until there is a line on standard input, or its end. false: a port failed. */
bool io_hold(struct io *const *ios, unsigned n, struct io_error *error);

/*
 * Set the destination and the encapsulation of a port of frames from the options, which must live
 * as long as the port. Without options frames are broadcast.
 */
void io_set_destination(struct io *io, const struct options *options);

/* Openers of each kind; `name` is the text after the colon. */
struct io *io_udp_open(const struct options *options, const char *name, struct io_error *error);
struct io *io_packet_open(const struct options *options, const char *name, struct io_error *error);
struct io *io_dray_open(const struct options *options, const char *name, struct io_error *error);
struct io *io_null_open(const struct options *options, struct io_error *error);
struct io *io_dpdk_open(const struct options *options, const char *name, struct io_error *error);

/* The part of --version about DPDK: ", DPDK ABI 23", or "". */
const char *io_dpdk_version(void);

/* Whether a role sends or receives on a port. */
static inline bool io_sends(const struct options *o)
{
	return o->role != ROLE_SINK;
}

static inline bool io_receives(const struct options *o)
{
	return o->role != ROLE_SEND;
}

/* Whether a refusal to send is more than the answer of a host where nothing listens. */
bool io_is_fatal(int error);

/* Write the text of an error. Returns NULL. */
__attribute__((format(printf, 2, 3))) void *io_fail(struct io_error *error, const char *format,
						    ...);

/*
 * Sleep on descriptors until ns of CLOCK_MONOTONIC. Returns how many are ready, or -errno; a signal
 * is not an error.
 */
struct pollfd;
int io_poll(struct pollfd *fds, unsigned n, uint64_t until_ns);

/* Sleep until then, but at most 50 ms or until a signal. */
void io_sleep(uint64_t until_ns);

#endif
