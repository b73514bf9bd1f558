/* SPDX-License-Identifier: Apache-2.0 */
/* libdray_iq: a stream of samples in one direction, through messages of a Drayage native port. */
#ifndef DRAY_IQ_H
#define DRAY_IQ_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A stream is one end of a link between two native ports, and sends or receives. A radio with both
 * directions has two ports, and a link for each. The link must have `messages` in the chain file.
 *
 * Samples are bytes: their format is the application's. What one call of dray_iq_send sends is a
 * block, for example a subframe. The receiver reads a sequence of bytes, in pieces of any size.
 *
 * Gaps. If samples get lost, because either end was killed or restarted, the receiver continues at
 * the first sample of a block, and dray_iq_receive says so with -ECONNRESET. Nothing else is ever
 * lost or reordered. The end that survives needs no action: its calls wait, and go on when the link
 * is up again. A receiver that opens while the sender is in the middle of a block starts with the
 * next block; that is no gap.
 *
 * Threads. One thread at a time may send or receive on a stream; the caller may hand it to another
 * thread, with its own synchronisation. Any thread may call dray_iq_stop, dray_iq_start and
 * dray_iq_stats. A thread of the library serves the control plane of each stream, so an application
 * may pause for as long as it likes. A child of fork() must not use the stream.
 *
 * The peer owns the samples that it sends, and may change them while dray_iq_peek shows them.
 *
 * Functions return 0 or a number of bytes, or -errno; dray_iq_strerror has the meaning.
 */

struct dray_iq;

enum dray_iq_direction {
	DRAY_IQ_SEND = 1,
	DRAY_IQ_RECEIVE = 2,
};

/*
 * Options of dray_iq_open. Begin with `struct dray_iq_options o = { .size = sizeof(o) };`. In every
 * field 0 means the default. Later versions add fields at the end, as in dray.h.
 */
struct dray_iq_options {
	size_t size;
	const char *directory; /* of the ports' sockets; default: $DRAY_PORTS or /run/dray/ports */
	uint32_t spin_us;      /* polling before sleep; default: none */
	uint32_t reserved;     /* 0 */
};

/*
 * Open a stream on the port `port`. Returns at once; the peer may come later. options: NULL is all
 * defaults.
 *
 * Errors: -EINVAL direction, options or name; those of dray_open, such as -ENOENT no such port,
 * -EBUSY the port is open elsewhere; -ENOMEM.
 */
int dray_iq_open(const char *port, enum dray_iq_direction direction,
		 const struct dray_iq_options *options, struct dray_iq **stream);

/* Close a stream. No other call on it may run meanwhile. What was sent still arrives. */
void dray_iq_close(struct dray_iq *stream);

/*
 * End a call that waits, now and later: it returns -ECANCELED within 100 ms. It does not end a
 * stream's thread or link; dray_iq_close does.
 */
void dray_iq_stop(struct dray_iq *stream);

/*
 * Send a block of `bytes` bytes: a copy of `samples`, or zeros if that is NULL. Waits while the
 * link is down, or the peer has all buffers. A block that is larger than a message of the link
 * takes several; in the worst case the receiver gets the beginning of a block, and then a gap.
 *
 * Errors: -EMSGSIZE the link carries no messages; -ECANCELED; -EINVAL the stream receives; -EBADF a
 * stream of the process before fork. After an error, part of the block may have been sent; the
 * receiver gets a gap after it.
 */
int dray_iq_send(struct dray_iq *stream, const void *samples, size_t bytes);

/*
 * Where the present peer starts: how many bytes had been sent before the first block that it gets.
 *
 * A radio sends and receives in step, on two streams. If its peer is restarted, the new one's
 * sample 0 in one direction belongs to its sample 0 in the other. So after a gap the survivor
 * inserts zeros into what it has received, up to this many bytes since the beginning, and then goes
 * on. If it has received more than that already, from the peer before, it leaves out as much.
 *
 * Any thread may call it. Errors: -ENOTCONN no block was sent to the present peer yet, or there is
 * none; -EINVAL the stream receives.
 */
int dray_iq_start(struct dray_iq *stream, uint64_t *bytes);

/*
 * Receive `bytes` bytes. Waits for at most timeout_ms for all of them; -1: for ever. Returns how
 * many came: fewer only when the time is over. The next call continues after them.
 *
 * Errors: -ECONNRESET a gap: what comes next does not continue what came last, and is the
 * beginning of a block. Bytes that this call has already written to `samples` are void, and so is
 * the beginning of a block that earlier calls have returned. The next call receives what comes
 * after the gap. Others: -EMSGSIZE, -ECANCELED, -EINVAL, -EBADF as for dray_iq_send.
 */
ssize_t dray_iq_receive(struct dray_iq *stream, void *samples, size_t bytes, int timeout_ms);

/*
 * Show the next samples where they are in shared memory, without a copy. Waits for at most
 * timeout_ms for the first of them; -1: for ever. Returns how many bytes are there, from *samples
 * on; 0: none came in time. They stay until dray_iq_consume. A block begins at a multiple of 64.
 * Errors: as dray_iq_receive.
 */
ssize_t dray_iq_peek(struct dray_iq *stream, const void **samples, int timeout_ms);

/*
 * Take the first `bytes` bytes of what dray_iq_peek has shown; no more than it returned. With the
 * last of them the buffer goes back to the sender.
 */
void dray_iq_consume(struct dray_iq *stream, size_t bytes);

/*
 * Counters since dray_iq_open. Set size first. `dray status` shows the rate and the one-way latency
 * of the link.
 */
struct dray_iq_stats {
	size_t size;
	uint64_t messages, bytes; /* sent, or received and not skipped */
	uint64_t gaps;		  /* that dray_iq_receive reports */
	uint64_t skipped_bytes;	  /* received, and dropped up to the beginning of a block */
};

/* Errors: -EINVAL size too small; -E2BIG size over 4096. */
int dray_iq_stats(struct dray_iq *stream, struct dray_iq_stats *stats);

/* The meaning of 0 or -errno from this library, as a sentence. Never NULL. */
const char *dray_iq_strerror(int error);

#ifdef __cplusplus
}
#endif
#endif
