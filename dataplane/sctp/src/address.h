/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses, alone and packed one after another. */
#ifndef DRAY_SCTP_ADDRESS_H
#define DRAY_SCTP_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* The size that a family's address has; 0: neither IPv4 nor IPv6. */
socklen_t address_size(sa_family_t family);

/* Whether `size` bytes hold an address of one of both families. */
bool address_valid(const struct sockaddr *address, socklen_t size);

/* How many addresses the `size` bytes are, exactly; -1 if they are not. */
int address_count(const void *addresses, size_t size);

/* An address as a socket of that family has it: on an IPv6 socket one of IPv4 is mapped. */
struct sockaddr_storage address_for(int family, const struct sockaddr_storage *address);

/* As getsockname gives it: as much as there is room for, and its whole size. */
void address_give(const struct sockaddr *address, struct sockaddr *to, socklen_t *size);

#endif
