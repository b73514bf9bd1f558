/* SPDX-License-Identifier: Apache-2.0 */
/* Flags of messages. */
#ifndef DRAY_SCTP_FLAGS_H
#define DRAY_SCTP_FLAGS_H

#include <stdint.h>

/* usrsctp's for those of Linux, and back. */
uint16_t flags_to_send(uint16_t from);
uint16_t flags_from_send(uint16_t from);

#endif
