/* SPDX-License-Identifier: Apache-2.0 */
/* Control messages: building them, and checking every one that comes. */
#ifndef DRAY_WIRE_H
#define DRAY_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "layout.h"

struct wire_message {
	struct wire_header header;
	union {
		struct wire_hello hello;
		struct wire_welcome welcome;
		struct wire_offer offer;
		struct wire_mapped mapped;
		struct wire_rebind rebind;
		struct wire_stats stats;
		struct wire_bye bye;
		struct wire_error error;
		struct wire_capture capture;
		struct wire_captured captured;
		struct wire_classes classes;
		struct wire_classed classed;
		uint8_t raw[WIRE_MAX - sizeof(struct wire_header)];
	};
};
static_assert(sizeof(struct wire_message) == WIRE_MAX, "a message");

enum wire_sender { FROM_END, FROM_BROKER };

bool wire_name_valid(const char *name);

/* A zeroed message with its header filled in; the body's length follows from type and sender. */
void wire_begin(struct wire_message *message, enum wire_sender sender, enum wire_type type,
		uint32_t generation);
void wire_error(struct wire_message *message, enum wire_sender sender, int code, uint32_t about,
		const char *text);

static inline size_t wire_size(const struct wire_message *message)
{
	return sizeof(message->header) + message->header.length;
}

/*
 * Check a message of `size` bytes that came from `sender`, with `fds` descriptors: all that can be
 * said without knowing the receiver's state. 0; 1: an unknown hint, to be ignored; -EPROTO,
 * -EPROTONOSUPPORT (version), -EMSGSIZE (longer than allowed).
 */
int wire_check(const struct wire_message *message, size_t size, unsigned fds,
	       enum wire_sender sender);

/* Send without blocking. 0 or -errno. */
int wire_send(int socket, const struct wire_message *message, const int *fds, unsigned count);

/*
 * Receive without blocking, and check. 0: a message, fds has *count descriptors, which are the
 * caller's; 1: a hint, to be ignored; -EAGAIN; -EPIPE the other side has hung up; otherwise as
 * wire_check. On errors no descriptor is left open.
 */
int wire_receive(int socket, struct wire_message *message, int fds[WIRE_MAX_FDS], unsigned *count,
		 enum wire_sender sender);

#endif
