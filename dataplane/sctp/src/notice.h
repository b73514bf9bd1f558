/* SPDX-License-Identifier: Apache-2.0 */
/* Notifications as usrsctp has them, made into those of Linux. */
#ifndef DRAY_SCTP_NOTICE_H
#define DRAY_SCTP_NOTICE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel.h"

/* The most that a notification grows by. */
#define NOTICE_MORE 64

/* Which association it says has ended, and with which error; id 0: none. */
struct notice_end {
	uint32_t id;
	int error;
};

/*
 * Translate the `size` bytes at `from`: the bytes written to `to`, which has room for
 * size + NOTICE_MORE; 0 if it is none that `events` subscribes to, or not a whole notification.
 */
size_t notice_translate(const void *from, size_t size, const uint8_t events[K_EVENT_KINDS],
			void *to, struct notice_end *end);

/* The type of usrsctp's for one of Linux; 0: this library has none. */
uint16_t notice_type(uint16_t linux_type);

#endif
