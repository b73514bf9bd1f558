/* SPDX-License-Identifier: Apache-2.0 */
/* The Ethernet, IPv4 and UDP headers in which ports of frames carry a datagram. */
#ifndef GEN_FRAME_H
#define GEN_FRAME_H

#include <stdint.h>

#define FRAME_HEADERS 42u /* bytes: 14 + 20 + 8 */
#define FRAME_PORT 5010	  /* UDP source port of flow 0, and the destination where none was given */

struct frame_address {
	uint8_t from_mac[6], to_mac[6];
	uint8_t from_ip[4], to_ip[4]; /* network order */
	uint16_t to_port;
};

/* Write FRAME_HEADERS bytes before a payload of that many bytes. */
void frame_write(uint8_t *frame, const struct frame_address *address, uint16_t from_port, uint32_t payload);

/*
 * Bytes of the UDP payload, which begins at FRAME_HEADERS; 0 where the frame is no whole IPv4 UDP datagram without options. The frame may be written
 * to meanwhile by whoever sent it: the result is within `length` all the same.
 */
uint32_t frame_payload(const uint8_t *frame, uint32_t length);

/* Send it back: exchange the addresses of both layers, and the ports. */
void frame_turn(uint8_t *frame);

#endif
