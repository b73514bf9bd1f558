/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses: what is read is printed as it was, and what could be meant in two ways is refused with
 * words.
 */
#include "address.h"

#include <net/if.h>

#include "support.h"

static void read_and_print(const char *text, const char *want)
{
	char got[ADDRESS_TEXT];
	union address a;
	const char *wrong = address_read(text, &a);

	if (wrong)
		fprintf(stderr, "%s %s\n", text, wrong);
	CHECK(wrong == NULL);
	address_print(&a, got);
	if (strcmp(got, want) != 0)
		fprintf(stderr, "%s is printed as %s\n", text, got);
	CHECK(strcmp(got, want) == 0);
}

static void refused(const char *text, const char *words)
{
	union address a;
	const char *wrong = address_read(text, &a);

	if (!wrong || !strstr(wrong, words))
		fprintf(stderr, "%s: %s\n", text, wrong ? wrong : "taken");
	CHECK(wrong && strstr(wrong, words));
}

int main(void)
{
	char loopback[IF_NAMESIZE] = "", text[ADDRESS_TEXT];
	union address a;

	read_and_print("192.0.2.1:5010", "192.0.2.1:5010");
	read_and_print("0.0.0.0:0", "0.0.0.0:0");
	read_and_print("[fd00::1]:5010", "[fd00::1]:5010");
	read_and_print("[::]:0", "[::]:0");
	read_and_print("[FD00:0:0:0:0:0:0:1]:65535", "[fd00::1]:65535");
	read_and_print("[fe80::1]:1", "[fe80::1]:1");
	CHECK(address_read("[fd00::1]:5010", &a) == NULL && address_is6(&a) &&
	      address_port(&a) == 5010 && !address_lacks_interface(&a));
	CHECK(address_read("[fe80::1]:5010", &a) == NULL && address_lacks_interface(&a));
	CHECK(address_read("192.0.2.1:5010", &a) == NULL && !address_is6(&a) &&
	      address_port(&a) == 5010 && !address_lacks_interface(&a));
	if (if_indextoname(1, loopback)) { /* the first of every namespace */
		snprintf(text, sizeof(text), "[fe80::1%%%s]:9", loopback);
		read_and_print(text, text);
		CHECK(address_read(text, &a) == NULL && a.v6.sin6_scope_id == 1 &&
		      !address_lacks_interface(&a));
	}
	refused("::1:5010", "ambiguous");
	refused("fd00::1", "ambiguous");
	refused(":::5010", "ambiguous");
	refused("[fe80::1%none-such]:5010", "interface");
	refused("[fe80::1%]:5010", "interface");
	refused("[::ffff:192.0.2.1]:5010", "IPv4");
	refused("[192.0.2.1]:5010", "no address");
	refused("[fd00::1]", "no address");
	refused("[fd00::1]5010", "no address");
	refused("[]:5010", "no address");
	refused("[", "no address");
	refused("192.0.2.1", "no address");
	refused("192.0.2:5010", "no address");
	refused(":5010", "no address");
	refused("host:5010", "no address");
	refused("192.0.2.1:65536", "port");
	refused("192.0.2.1:", "port");
	refused("[fd00::1]:port", "port");
	return 0;
}
