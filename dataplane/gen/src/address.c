/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and printing addresses. */
#include "address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "units.h"

#define NO_ADDRESS "is no address: write IP:PORT, or [IP]:PORT for IPv6"

/* Copy the text between two positions, and terminate it. */
static bool cut(char *to, size_t size, const char *from, const char *end)
{
	size_t n = (size_t)(end - from);

	if (n == 0 || n >= size)
		return false;
	memcpy(to, from, n);
	to[n] = '\0';
	return true;
}

static const char *read_v4(const char *text, const char *end, union address *a)
{
	char ip[INET_ADDRSTRLEN];

	a->v4.sin_family = AF_INET;
	return cut(ip, sizeof(ip), text, end) && inet_pton(AF_INET, ip, &a->v4.sin_addr) == 1
		       ? NULL
		       : NO_ADDRESS;
}

static const char *read_v6(const char *text, const char *end, union address *a)
{
	char ip[INET6_ADDRSTRLEN + 1 + IF_NAMESIZE], *interface;

	a->v6.sin6_family = AF_INET6;
	if (!cut(ip, sizeof(ip), text, end))
		return NO_ADDRESS;
	interface = strchr(ip, '%');
	if (interface)
		*interface++ = '\0';
	if (inet_pton(AF_INET6, ip, &a->v6.sin6_addr) != 1)
		return NO_ADDRESS;
	if (IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr))
		return "is an IPv4 address in the form of IPv6: write IP:PORT";
	if (interface)
		a->v6.sin6_scope_id = if_nametoindex(interface);
	return interface && a->v6.sin6_scope_id == 0
		       ? "names an interface that is not in this network namespace"
		       : NULL;
}

const char *address_read(const char *text, union address *a)
{
	const char *colon = strrchr(text, ':'), *wrong;
	uint64_t port;

	memset(a, 0, sizeof(*a));
	if (!colon)
		return NO_ADDRESS;
	if (*text == '[')
		wrong = colon[-1] == ']' ? read_v6(text + 1, colon - 1, a) : NO_ADDRESS;
	else if (strchr(text, ':') != colon)
		wrong = "is ambiguous: write an IPv6 address in brackets, such as [fd00::1]:5010";
	else
		wrong = read_v4(text, colon, a);
	if (wrong)
		return wrong;
	if (!units_number(colon + 1, &port) || port > UINT16_MAX)
		return "has no port from 0 to 65535 at its end";
	address_set_port(a, (uint16_t)port);
	return NULL;
}

void address_print(const union address *a, char text[ADDRESS_TEXT])
{
	char ip[INET6_ADDRSTRLEN], interface[IF_NAMESIZE] = "";

	if (!address_is6(a)) {
		inet_ntop(AF_INET, &a->v4.sin_addr, ip, sizeof(ip));
		snprintf(text, ADDRESS_TEXT, "%s:%u", ip, address_port(a));
		return;
	}
	inet_ntop(AF_INET6, &a->v6.sin6_addr, ip, sizeof(ip));
	if (a->v6.sin6_scope_id)
		(void)if_indextoname(a->v6.sin6_scope_id, interface);
	snprintf(text, ADDRESS_TEXT, "[%s%s%s]:%u", ip, *interface ? "%" : "", interface,
		 address_port(a));
}

bool address_lacks_interface(const union address *a)
{
	return address_is6(a) && IN6_IS_ADDR_LINKLOCAL(&a->v6.sin6_addr) &&
	       a->v6.sin6_scope_id == 0;
}

uint16_t address_port(const union address *a)
{
	return ntohs(address_is6(a) ? a->v6.sin6_port : a->v4.sin_port);
}

void address_set_port(union address *a, uint16_t port)
{
	if (address_is6(a))
		a->v6.sin6_port = htons(port);
	else
		a->v4.sin_port = htons(port);
}
