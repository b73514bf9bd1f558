/* SPDX-License-Identifier: Apache-2.0 */
/* A datagram in a port's memory. */
#ifndef GEN_BUF_H
#define GEN_BUF_H

#include <stdint.h>

#define IO_BATCH 128u /* datagrams in one call, at most */

struct io_buf {
	/* UDP payload; the sender of a received one may change it at any time */
	uint8_t *data;
	uint32_t length;      /* bytes; 0 if the received frame has no datagram */
	uint32_t headers;     /* of a received datagram: bytes of the frame before it */
	uint32_t index;	      /* for the port itself */
	uint32_t payload_sum; /* of draygen's packets, if they have one: README.md, "Packet" */
};

#endif
