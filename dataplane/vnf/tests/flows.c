/* SPDX-License-Identifier: Apache-2.0 */
/* What identifies a flow: both directions have one key and one name, and no two flows do. */
#include "flows.h"

#include "files.h"

static void test_directions(void)
{
	struct flow_key there, back, other;
	struct packet p;

	for (unsigned i = 0; i < 100000; i += 997) {
		flow_packet(&p, i, false);
		CHECK(flow_key(&p, &there));
		flow_packet(&p, i, true);
		CHECK(flow_key(&p, &back));
		CHECK(memcmp(&there, &back, sizeof(there)) == 0);
		flow_packet(&p, i + 1, false);
		CHECK(flow_key(&p, &other));
		CHECK(memcmp(&there, &other, sizeof(there)) != 0);
	}
}

static void test_text(void)
{
	struct flow_key key = {.version = 4, .protocol = PROTOCOL_UDP};
	char text[FLOW_TEXT];
	struct packet p;

	flow_packet(&p, 5010, false);
	CHECK(flow_key(&p, &key));
	flow_text(&key, text);
	CHECK(strcmp(text, "udp:10.0.0.1/5010-10.0.0.2/443") == 0);
	memset(&key, 0xff, sizeof(key)); /* the longest */
	key.version = 6;
	flow_text(&key, text);
	CHECK(strcmp(text, "255:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/65535-"
			   "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/65535") == 0);
}

static void test_no_flow(void)
{
	struct flow_key key;
	struct packet p;

	flow_packet(&p, 1, false);
	p.have = ETHERNET + IP4 - 1;
	CHECK(!flow_key(&p, &key));
	flow_packet(&p, 1, false);
	put16(p.head + 2 * MAC, TYPE_ARP);
	CHECK(!flow_key(&p, &key));
}

int main(void)
{
	test_directions();
	test_text();
	test_no_flow();
	return 0;
}
