/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses. */
#include "address.h"

#include <string.h>
#include <netinet/in.h>

socklen_t address_size(sa_family_t family)
{
	switch (family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

bool address_valid(const struct sockaddr *address, socklen_t size)
{
	return address && size >= sizeof(sa_family_t) && address_size(address->sa_family) > 0 &&
	       size >= address_size(address->sa_family);
}

int address_count(const void *addresses, size_t size)
{
	const char *at = addresses;
	int count = 0;

	while (size > 0) {
		sa_family_t family;
		socklen_t one;

		if (size < sizeof(family))
			return -1;
		memcpy(&family, at, sizeof(family));
		one = address_size(family);
		if (one == 0 || one > size)
			return -1;
		at += one;
		size -= one;
		count++;
	}
	return count;
}

struct sockaddr_storage address_for(int family, const struct sockaddr_storage *address)
{
	const struct sockaddr_in *from = (const void *)address;
	union {
		struct sockaddr_storage any;
		struct sockaddr_in6 in6;
	} to = {.any = *address};

	if (family != AF_INET6 || address->ss_family != AF_INET)
		return *address;
	to.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = from->sin_port};
	to.in6.sin6_addr.s6_addr[10] = to.in6.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&to.in6.sin6_addr.s6_addr[12], &from->sin_addr, sizeof(from->sin_addr));
	return to.any;
}

void address_give(const struct sockaddr *address, struct sockaddr *to, socklen_t *size)
{
	socklen_t whole = address_size(address->sa_family);

	if (!to || !size)
		return;
	memcpy(to, address, *size < whole ? *size : whole);
	*size = whole;
}
