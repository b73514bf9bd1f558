/* SPDX-License-Identifier: Apache-2.0 */
/* draygen's packet: README.md, "Packet". */
#ifndef GEN_PACKET_H
#define GEN_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "frame.h"

#define PACKET_MAGIC 0x4e454744u
#define PACKET_VERSION 1
#define PACKET_VERSION_LONG 2 /* of packets whose length does not fit the header of version 1 */
#define PACKET_HEADER 56u     /* bytes */
#define PACKET_SHORT 18u      /* bytes of the short header, for payloads too small for the other */
#define PACKET_MAX 65507u     /* bytes of a UDP payload over IPv4 */
#define PACKET_LONGEST 0xffffffu /* bytes, of a port that carries more than UDP */
#define PACKET_FLOWS 256

enum packet_type { PACKET_DATA = 1, PACKET_END = 2, PACKET_REPLY = 3, PACKET_END_REPLY = 4 };

enum packet_flags {
	PACKET_WARMUP = 1u << 0,
	PACKET_SUMMED = 1u << 1, /* the buffer's payload_sum is valid */
	PACKET_BULK = 1u << 2,	 /* of the second stream of a sender: bulk.h */
};

/* As read from a short header, only its own bits are set until packet_complete. */
struct packet {
	uint8_t type;
	uint16_t flags, flow;
	uint32_t length; /* bytes, of one that was read */
	uint32_t stream;
	uint64_t sequence;
	/* ns of CLOCK_MONOTONIC; turned: 0 before a reflector has seen it */
	uint64_t intended, sent, turned;
};

enum packet_verdict {
	PACKET_GOOD,
	PACKET_FOREIGN, /* not draygen's */
	PACKET_CORRUPT, /* draygen's, with a wrong checksum */
};

/* Data or a reply that is too short for the whole header. */
static inline bool packet_is_short(const struct packet *packet)
{
	return packet->length < PACKET_HEADER;
}

/*
 * Write the headers of a run: the packet itself into the first buffer, and packets alike with the
 * next sequence numbers into the others. Buffers of less than PACKET_HEADER bytes get a short
 * header, whose checksum also covers the bytes after it. A data packet with PACKET_SUMMED gets its
 * buffer's payload_sum.
 */
void packet_write(const struct packet *first, const struct io_buf *bufs, unsigned n);

/*
 * The same with the headers of the frames before them: the first bytes of a frame are in one cache
 * line, which is written in one go.
 */
void packet_write_frames(const struct packet *first, const struct io_buf *bufs, unsigned n,
			 const struct frame_flow *flow);

/*
 * Fill the bytes after the header with words that depend on the sequence number, and return its
 * sum; 0 after a short one.
 */
uint32_t packet_fill(uint8_t *datagram, uint32_t length, uint64_t sequence);

/*
 * Read the run that n datagrams begin with: good data packets or replies, alike but for consecutive
 * sequence numbers, with headers of one length before them. Returns how many; 1 for everything
 * else. The verdict, and the packet if it is good, are those of the first. Sets payload_sum of good
 * ones.
 *
 * The senders are untrusted, and may still be writing: each header is copied once, then checked.
 * With `check` the padding must have a sum, and it must be right.
 */
unsigned packet_read(struct io_buf *bufs, unsigned n, bool check, struct packet *first,
		     enum packet_verdict *verdict);

/*
 * Make the sequence number and the times of a short packet whole: those that are nearest to `next`,
 * the number that is expected, and to now. The numbers of warm-up packets stay as they are.
 */
void packet_complete(struct packet *packet, uint64_t now, uint64_t next);

#endif
