/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the command line. */
#include "options_check.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "io.h"
#include "net.h"
#include "packet.h"

enum {
	FOR_SINK = 1u << ROLE_SINK,
	FOR_SEND = 1u << ROLE_SEND,
	FOR_PING = 1u << ROLE_PING,
	FOR_LOOP = 1u << ROLE_LOOP,
	SENDERS = FOR_SEND | FOR_PING | FOR_LOOP,
	ALL = FOR_SINK | SENDERS,
};

enum option_id {
	O_PORT = 256,
	O_TO,
	O_TO_MAC,
	O_PACKETS,
	O_DURATION,
	O_STREAM,
	O_INTERVAL,
	O_BUSY,
	O_SPIN,
	O_CHECK,
	O_STRICT,
	O_BUFFER,
	O_BATCH,
	O_SIZE,
	O_RATE,
	O_LAYER,
	O_BURST,
	O_GRANULARITY,
	O_CATCH_UP,
	O_FLOWS,
	O_WARMUP,
	O_CLOSED,
	O_TIMEOUT,
	O_REFLECT,
	O_ONCE,
	O_BESIDE,
	O_PEER_TIMEOUT,
	O_TO_PORT,
	O_BOTH,
	O_BACK_TO,
	O_BACK_TO_MAC,
	O_EAL,
	O_QUEUES,
	O_DESCRIPTORS,
	O_MTU,
	O_FROM,
	O_HOLD,
	O_ENCAP,
	O_SPREAD,
	O_BACK_ENCAP,
	O_FRONTHAUL,
	O_FAPI,
	O_DSCP,
	O_BULK
};

static const struct option known[] = {{"port", required_argument, NULL, O_PORT},
				      {"to", required_argument, NULL, O_TO},
				      {"to-mac", required_argument, NULL, O_TO_MAC},
				      {"packets", required_argument, NULL, O_PACKETS},
				      {"duration", required_argument, NULL, O_DURATION},
				      {"stream", required_argument, NULL, O_STREAM},
				      {"interval", required_argument, NULL, O_INTERVAL},
				      {"busy", no_argument, NULL, O_BUSY},
				      {"spin", required_argument, NULL, O_SPIN},
				      {"check", no_argument, NULL, O_CHECK},
				      {"strict", no_argument, NULL, O_STRICT},
				      {"buffer", required_argument, NULL, O_BUFFER},
				      {"batch", required_argument, NULL, O_BATCH},
				      {"size", required_argument, NULL, O_SIZE},
				      {"rate", required_argument, NULL, O_RATE},
				      {"layer", required_argument, NULL, O_LAYER},
				      {"burst", required_argument, NULL, O_BURST},
				      {"granularity", required_argument, NULL, O_GRANULARITY},
				      {"catch-up", required_argument, NULL, O_CATCH_UP},
				      {"flows", required_argument, NULL, O_FLOWS},
				      {"warmup", required_argument, NULL, O_WARMUP},
				      {"closed", no_argument, NULL, O_CLOSED},
				      {"timeout", required_argument, NULL, O_TIMEOUT},
				      {"reflect", no_argument, NULL, O_REFLECT},
				      {"once", no_argument, NULL, O_ONCE},
				      {"beside", required_argument, NULL, O_BESIDE},
				      {"peer-timeout", required_argument, NULL, O_PEER_TIMEOUT},
				      {"to-port", required_argument, NULL, O_TO_PORT},
				      {"both", no_argument, NULL, O_BOTH},
				      {"back-to", required_argument, NULL, O_BACK_TO},
				      {"back-to-mac", required_argument, NULL, O_BACK_TO_MAC},
				      {"eal", required_argument, NULL, O_EAL},
				      {"queues", required_argument, NULL, O_QUEUES},
				      {"descriptors", required_argument, NULL, O_DESCRIPTORS},
				      {"mtu", required_argument, NULL, O_MTU},
				      {"from", required_argument, NULL, O_FROM},
				      {"hold", no_argument, NULL, O_HOLD},
				      {"encap", required_argument, NULL, O_ENCAP},
				      {"spread", required_argument, NULL, O_SPREAD},
				      {"back-encap", required_argument, NULL, O_BACK_ENCAP},
				      {"fronthaul", required_argument, NULL, O_FRONTHAUL},
				      {"fapi", required_argument, NULL, O_FAPI},
				      {"dscp", required_argument, NULL, O_DSCP},
				      {"bulk", required_argument, NULL, O_BULK},
				      {0}};

static unsigned roles_of(int id)
{
	switch (id) {
	case O_REFLECT:
	case O_ONCE:
		return FOR_SINK;
	case O_CLOSED:
		return FOR_PING;
	case O_BULK:
		return FOR_SEND;
	case O_FRONTHAUL:
	case O_FAPI:
		return ALL & ~FOR_PING;
	case O_TIMEOUT:
		return FOR_PING | FOR_LOOP;
	case O_TO_PORT:
	case O_BOTH:
	case O_BACK_TO:
	case O_BACK_TO_MAC:
	case O_BACK_ENCAP:
		return FOR_LOOP;
	case O_TO:
	case O_TO_MAC:
	case O_RATE:
	case O_LAYER:
	case O_BURST:
	case O_GRANULARITY:
	case O_CATCH_UP:
	case O_FLOWS:
	case O_WARMUP:
	case O_FROM:
	case O_HOLD:
	case O_ENCAP:
	case O_SPREAD:
	case O_DSCP:
		return SENDERS;
	default:
		return ALL;
	}
}

static const char help[] =
	"usage: draygen sink --port PORT [--reflect] [--once] [--packets N] [--duration TIME] "
	"[option ...]\n"
	"       draygen send --port PORT [--to IP:PORT] [--size BYTES|imix] [--rate RATE] "
	"[--packets N] [--duration TIME] [option ...]\n"
	"       draygen ping --port PORT [--to IP:PORT] [--closed] [as send ...]\n"
	"       draygen loop --port PORT --to-port PORT [--both] [as send ...]\n"
	"       draygen --help | --version\n"
	"PORT: udp:IP:PORT | packet:IFACE | dray:NAME | dpdk:DEVICE | null    RATE: 1000pps | "
	"2Mpps | 1Gbps | max    TIME: 250us | 1.5s\n"
	"ENCAP: qinq:s=N,c=N | gre-mpls:label=N,key=N,from=IP,to=IP | "
	"gtpu:teid=N,from=IP,to=IP[,tunnels=N][,pdu=up|down,qfi=N | ,nru=dl]\n"
	"FRONTHAUL: scs=15|30|60|120[,prb=N][,layers=N][,vlan=N][,t1a-cp=US-US][,t1a-up=US-US]"
	"[,t2a-cp=US-US][,t2a-up=US-US]\n"
	"FAPI: scs=15|30|120[,dl-tti=BYTES][,tx-data=BYTES][,within=US]    (128 to 4194304 B, 1 "
	"to 10000 us)\n"
	"IP:   192.0.2.1 | [fd00::1] | [fe80::1%IFACE]\n"
	"\n"
	"all:        --packets N  --duration TIME  --stream ID  --interval TIME  --busy  --spin "
	"TIME|auto  --check  --strict  --buffer BYTES\n"
	"            --beside N  --peer-timeout TIME\n"
	"udp ports:  --batch N\n"
	"senders:    --to IP:PORT  --to-mac MAC  --size BYTES|imix  --rate RATE  --layer "
	"wire|frame|ip|payload  --burst N\n"
	"            --granularity TIME  --catch-up TIME  --flows N  --warmup N  --hold  --encap "
	"ENCAP  --spread from|to  --dscp N\n"
	"send:       --bulk RATE[,size=BYTES][,dscp=N][,flows=N]\n"
	"ping:       --closed  --timeout TIME\n"
	"loop:       --to-port PORT  --both  --back-to IP:PORT  --back-to-mac MAC  --back-encap "
	"ENCAP  --timeout TIME\n"
	"frames:     --fronthaul FRONTHAUL (not ping)\n"
	"dray ports: --fapi FAPI (not ping; also send and loop over null)\n"
	"sink:       --reflect  --once  --size BYTES|imix (of what a null port makes)\n"
	"dpdk ports: --eal \"ARGUMENT ...\"  --queues N  --descriptors N  --mtu BYTES  --from IP   "
	"       (in draygen-dpdk)\n"
	"\n"
	"Results are JSON, one object a line. SIGINT and SIGTERM end a role, with its result. All "
	"of it: dataplane/gen/README.md\n"
	"exit: 0 done, 1 error, 2 wrong usage, 4 --strict and something was lost, unsent, doubled, "
	"reordered, corrupt, early or late\n";

const char *options_role(enum role role)
{
	static const char *const names[] = {[ROLE_SINK] = "sink",
					    [ROLE_SEND] = "send",
					    [ROLE_PING] = "ping",
					    [ROLE_LOOP] = "loop"};

	return names[role];
}

static bool between(const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
	return units_number(text, value) && *value >= low && *value <= high;
}

static bool time_between(const char *text, uint64_t low, uint64_t high, uint64_t *ns)
{
	return units_time(text, ns) && *ns >= low && *ns <= high;
}

static bool read_from(const char *text, struct options *o)
{
	char with_port[ADDRESS_TEXT];
	int n = snprintf(with_port, sizeof(with_port), strchr(text, ':') ? "[%s]:0" : "%s:0", text);

	o->from_given = true;
	return n > 0 && (size_t)n < sizeof(with_port) && !address_read(with_port, &o->from);
}

static bool read_layer(const char *text, int32_t *bytes)
{
	static const struct {
		const char *name;
		int32_t bytes;
	} layers[] = {
		{"wire", 24}, {"frame", 0}, {"ip", -14}, {"payload", -(int32_t)FRAME_HEADERS}};

	for (unsigned i = 0; i < sizeof(layers) / sizeof(*layers); i++) {
		*bytes = layers[i].bytes;
		if (strcmp(text, layers[i].name) == 0)
			return true;
	}
	return false;
}

static bool read_spin(const char *text, struct options *o)
{
	o->spin_auto = strcmp(text, "auto") == 0;
	o->spin_ns = 0;
	return o->spin_auto || time_between(text, 0, 1000000000, &o->spin_ns);
}

static bool set_flag(struct options *o, int id)
{
	bool *flags[] = {[O_BUSY - O_PORT] = &o->busy,	     [O_CHECK - O_PORT] = &o->check,
			 [O_STRICT - O_PORT] = &o->strict,   [O_CLOSED - O_PORT] = &o->closed,
			 [O_REFLECT - O_PORT] = &o->reflect, [O_ONCE - O_PORT] = &o->once,
			 [O_BOTH - O_PORT] = &o->both,	     [O_HOLD - O_PORT] = &o->hold};

	*flags[id - O_PORT] = true;
	return true;
}

static bool set_how_to_send(struct options *o, int id, const char *text)
{
	switch (id) {
	case O_TO:
		o->to_text = text;
		return true; /* check_to reads it */
	case O_TO_MAC:
		o->to_mac_given = true;
		return mac_read(text, o->to_mac);
	case O_TO_PORT:
		o->to_port = text;
		return true;
	case O_BACK_TO:
		o->back_to_text = text;
		return true; /* check_back reads it */
	case O_BACK_TO_MAC:
		o->back_to_mac_given = true;
		return mac_read(text, o->back_to_mac);
	case O_ENCAP:
		o->encap_text = text;
		return true; /* check_encap reads it */
	case O_SPREAD:
		o->spread_text = text;
		o->encap.spread = strcmp(text, "from") == 0 ? ENCAP_SPREAD_FROM : ENCAP_SPREAD_TO;
		return o->encap.spread == ENCAP_SPREAD_FROM || strcmp(text, "to") == 0;
	case O_BACK_ENCAP:
		o->back_encap_text = text;
		return true;
	case O_FRONTHAUL:
		o->fronthaul_text = text;
		return true; /* check_fronthaul reads it */
	case O_FAPI:
		o->fapi_text = text;
		return true; /* check_fapi reads it */
	case O_BULK:
		o->bulk_text = text;
		return true; /* check_bulk reads it */
	case O_DSCP:
		return units_between(text, 0, DSCP_MAX, &o->dscp);
	case O_SIZE:
		o->imix = strcmp(text, "imix") == 0;
		return o->imix ||
		       units_between(text, FRAME_HEADERS + PACKET_SHORT, FRAME_MAX, &o->size);
	case O_RATE:
		o->rate_text = text;
		return units_rate(text, &o->rate) && o->rate.per_second <= 1000000000000;
	case O_LAYER:
		o->layer_text = text;
		return read_layer(text, &o->layer_bytes);
	case O_BURST:
		return units_between(text, 1, BURST_MAX, &o->burst);
	case O_GRANULARITY:
		o->granularity_given = true;
		return time_between(text, 0, 100000000, &o->granularity_ns);
	case O_CATCH_UP:
		o->catch_up_given = true;
		return time_between(text, 1, 3600000000000, &o->catch_up_ns);
	case O_FLOWS:
		return units_between(text, 1, 256, &o->flows);
	case O_WARMUP:
		return between(text, 0, UINT32_MAX, &o->warmup);
	default:
		return set_flag(o, id);
	}
}

static bool set_dpdk(struct options *o, int id, const char *text)
{
	switch (id) {
	case O_EAL:
		o->eal = text;
		return true;
	case O_QUEUES:
		return units_between(text, 1, QUEUES_MAX, &o->queues);
	case O_DESCRIPTORS:
		return units_between(text, 32, 32768, &o->descriptors);
	case O_MTU:
		return units_between(text, 68, FRAME_MAX - 14, &o->mtu);
	case O_FROM:
		return read_from(text, o);
	default:
		return set_how_to_send(o, id, text);
	}
}

static bool set(struct options *o, int id, const char *text)
{
	switch (id) {
	case O_PORT:
		o->port = text;
		return true;
	case O_PACKETS:
		return between(text, 1, UINT64_MAX / 2, &o->packets);
	case O_DURATION:
		return time_between(text, 1, 100000000000000, &o->duration_ns);
	case O_STREAM:
		return units_between(text, 1, UINT32_MAX, &o->stream);
	case O_INTERVAL:
		return time_between(text, 1000000, 3600000000000, &o->interval_ns);
	case O_SPIN:
		return read_spin(text, o);
	case O_TIMEOUT:
		return time_between(text, 1000, 60000000000, &o->timeout_ns);
	case O_BUFFER:
		return between(text, 4096, 1u << 30, &o->buffer);
	case O_BATCH:
		return units_between(text, 1, UDP_BATCH, &o->batch);
	case O_BESIDE:
		return units_between(text, 0, 100000, &o->beside);
	case O_PEER_TIMEOUT:
		return time_between(text, 1000000, 3600000000000, &o->peer_timeout_ns);
	default:
		return set_dpdk(o, id, text);
	}
}

static struct options defaults(enum role role)
{
	return (struct options){
		.role = role,
		.to_mac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		.stream = role == ROLE_SINK ? 0 : 1,
		.buffer = 4000000,
		.batch = UDP_BATCH,
		.headers = FRAME_HEADERS,
		.rate_text = "1000pps",
		.rate = {.per_second = 1000},
		.layer_text = "frame",
		.burst = 1,
		.flows = 1,
		.granularity_ns = 250000,
		.catch_up_ns = 10000000,
		.timeout_ns = 1000000000,
		.peer_timeout_ns = 10000000000,
		.back_to_mac = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		.queues = 1,
		.mtu = 1500,
	};
}

static int print_help(const char *word)
{
	if (strcmp(word, "--version") == 0)
		printf("draygen %s (%s%s)\n", DRAYGEN_VERSION, DRAY_DATE, io_dpdk_version());
	else
		fputs(help, stdout);
	return 1;
}

int options_read(int argc, char **argv, struct options *o)
{
	struct options usual;
	enum role role;
	int id, which;

	if (argc < 2)
		return options_wrong("say what to do: sink, send, ping or loop");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "--version") == 0)
		return print_help(argv[1]);
	for (role = ROLE_SINK; role <= ROLE_LOOP && strcmp(argv[1], options_role(role)) != 0;
	     role++)
		;
	if (role > ROLE_LOOP)
		return options_wrong("%s is none of sink, send, ping, loop", argv[1]);
	usual = defaults(role);
	*o = usual;
	opterr = 0;
	optind = 2;
	while ((id = getopt_long(argc, argv, "+", known, &which)) != -1) {
		if (id == '?' || id == ':')
			return options_wrong("%s is no option, or lacks its value",
					     argv[optind - 1]);
		if (!(roles_of(id) & 1u << role))
			return options_wrong("--%s is not for %s", known[which].name, argv[1]);
		if (!set(o, id, optarg))
			return options_wrong("--%s: %s is not possible", known[which].name, optarg);
	}
	if (optind != argc)
		return options_wrong("%s: not expected", argv[optind]);
	return options_check(o, &usual);
}
