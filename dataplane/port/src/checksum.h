/* SPDX-License-Identifier: Apache-2.0 */
/* Transport checksums that an application left to be filled in. */
#ifndef DRAY_CHECKSUM_H
#define DRAY_CHECKSUM_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Fill in the TCP or UDP checksum of an Ethernet frame with IPv4 or IPv6, behind any number of VLAN
 * tags (RFC 1071). false: it is no such frame.
 */
bool checksum_fill(uint8_t *frame, uint32_t length);

#endif
