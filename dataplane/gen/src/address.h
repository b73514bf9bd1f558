/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of UDP, of either family: 192.0.2.1:5010, [fd00::1]:5010, [fe80::1%f1u]:5010. */
#ifndef GEN_ADDRESS_H
#define GEN_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADDRESS_TEXT 80u /* bytes: the longest, with its interface */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Returns NULL, or what is wrong; the message goes after the text. */
const char *address_read(const char *text, union address *address);

/* The same as text, the interface of a link-local address by its name. */
void address_print(const union address *address, char text[ADDRESS_TEXT]);

/* A link-local address needs its interface. */
bool address_lacks_interface(const union address *address);

static inline bool address_is6(const union address *address)
{
	return address->any.sa_family == AF_INET6;
}

static inline socklen_t address_length(const union address *address)
{
	return address_is6(address) ? sizeof(address->v6) : sizeof(address->v4);
}

uint16_t address_port(const union address *address);
void address_set_port(union address *address, uint16_t port);

#endif
