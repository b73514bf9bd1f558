/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the command line. */
#include "options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "net.h"
#include "numbers.h"
#include "routes.h"

enum {
	L3FWD = 1u << MODE_L3FWD,
	BNG = 1u << MODE_BNG,
	GTPU = 1u << MODE_GTPU,
	ROUTERS = L3FWD | BNG | GTPU,
	ALL = ROUTERS | 1u << MODE_NONE | 1u << MODE_L2FWD | 1u << MODE_LB | 1u << MODE_SESSION,
};

enum option_id {
	O_STAGES = 256,
	O_YIELD,
	O_SLEEP,
	O_WORK,
	O_QUEUES,
	O_BURST,
	O_DESCRIPTORS,
	O_INTERVAL,
	O_DURATION,
	O_PACKETS,
	O_NEXT_HOP,
	O_IP,
	O_PEER,
	O_MTU,
	O_ROUTES,
	O_GENERATE,
	O_SEED,
	O_DEFAULT_ROUTE,
	O_SVLANS,
	O_SVLAN_BASE,
	O_CVLAN_BASE,
	O_LABEL,
	O_ROLE,
	O_PLAIN,
	O_SESSIONS,
	O_TUNNELS,
	O_TEID,
	O_UE,
	O_QFI,
	O_ANNOUNCED,
	O_SILENCE,
	O_REDIS,
	O_LAG,
	O_IDLE,
	O_TRACK
};

static const struct option known[] = {{"stages", no_argument, NULL, O_STAGES},
				      {"yield", no_argument, NULL, O_YIELD},
				      {"sleep", required_argument, NULL, O_SLEEP},
				      {"work", required_argument, NULL, O_WORK},
				      {"queues", required_argument, NULL, O_QUEUES},
				      {"burst", required_argument, NULL, O_BURST},
				      {"descriptors", required_argument, NULL, O_DESCRIPTORS},
				      {"interval", required_argument, NULL, O_INTERVAL},
				      {"duration", required_argument, NULL, O_DURATION},
				      {"packets", required_argument, NULL, O_PACKETS},
				      {"next-hop", required_argument, NULL, O_NEXT_HOP},
				      {"ip", required_argument, NULL, O_IP},
				      {"peer", required_argument, NULL, O_PEER},
				      {"mtu", required_argument, NULL, O_MTU},
				      {"routes", required_argument, NULL, O_ROUTES},
				      {"generate", required_argument, NULL, O_GENERATE},
				      {"seed", required_argument, NULL, O_SEED},
				      {"default-route", required_argument, NULL, O_DEFAULT_ROUTE},
				      {"svlans", required_argument, NULL, O_SVLANS},
				      {"svlan-base", required_argument, NULL, O_SVLAN_BASE},
				      {"cvlan-base", required_argument, NULL, O_CVLAN_BASE},
				      {"label", required_argument, NULL, O_LABEL},
				      {"role", required_argument, NULL, O_ROLE},
				      {"plain", no_argument, NULL, O_PLAIN},
				      {"sessions", required_argument, NULL, O_SESSIONS},
				      {"tunnels", required_argument, NULL, O_TUNNELS},
				      {"teid", required_argument, NULL, O_TEID},
				      {"ue", required_argument, NULL, O_UE},
				      {"qfi", required_argument, NULL, O_QFI},
				      {"announced", no_argument, NULL, O_ANNOUNCED},
				      {"silence", required_argument, NULL, O_SILENCE},
				      {"redis", required_argument, NULL, O_REDIS},
				      {"lag", required_argument, NULL, O_LAG},
				      {"idle", required_argument, NULL, O_IDLE},
				      {"track", required_argument, NULL, O_TRACK},
				      {0}};

static unsigned modes_of(int id)
{
	switch (id) {
	case O_NEXT_HOP:
		return ROUTERS | 1u << MODE_L2FWD | 1u << MODE_SESSION;
	case O_IP:
		return ROUTERS;
	case O_PEER:
		return BNG | GTPU;
	case O_ROUTES:
	case O_GENERATE:
	case O_SEED:
	case O_DEFAULT_ROUTE:
		return L3FWD;
	case O_SVLANS:
	case O_SVLAN_BASE:
	case O_CVLAN_BASE:
	case O_LABEL:
		return BNG;
	case O_ROLE:
	case O_PLAIN:
	case O_SESSIONS:
	case O_TUNNELS:
	case O_TEID:
	case O_UE:
	case O_QFI:
		return GTPU;
	case O_ANNOUNCED:
	case O_SILENCE:
		return 1u << MODE_LB;
	case O_REDIS:
	case O_LAG:
	case O_IDLE:
	case O_TRACK:
		return 1u << MODE_SESSION;
	default:
		return ALL;
	}
}

static const char help[] =
	"usage: dray-vnf EAL-ARGUMENTS -- MODE [option ...]\n"
	"       dray-vnf --help | --version\n"
	"\n"
	"none    moves pointers: what comes on port 0 leaves on port 1, and the other way round\n"
	"l2fwd   the same, with both MAC addresses rewritten\n"
	"l3fwd   IPv4 router: --routes FILE | --generate N [--seed N], --default-route PORT\n"
	"bng     broadband network gateway, even ports: CPE, odd: core:  --svlans N  --svlan-base "
	"N  --cvlan-base N  --label N\n"
	"gtpu    N3, even ports: N3, odd: plain:  --role upf|gnb  --plain  --sessions FILE | "
	"--tunnels N --teid N --ue ADDRESS --qfi N\n"
	"lb      load balancer: each flow that comes on port 0 goes to one of the workers on the "
	"other ports, and what they send leaves by port 0:  --announced  --silence TIME\n"
	"session a worker of lb: returns packets, and keeps a session for each flow:  --redis "
	"ADDRESS:PORT|unix:PATH  --lag TIME  --idle TIME  --track N\n"
	"\n"
	"all:         --stages  --yield  --sleep TIME  --work TIME  --queues N  --burst N  "
	"--descriptors N  --mtu [PORT=]BYTES  --packets N  --duration TIME  --interval TIME\n"
	"forwarders:  --next-hop PORT=MAC      (who is beyond the port)                   l2fwd "
	"and routers\n"
	"routers:     --ip PORT=ADDRESS        (the function's own; ARP is answered)      bng, "
	"gtpu: --peer PORT=ADDRESS (far end of the tunnels)\n"
	"\n"
	"Results are JSON, one object a line, at the end, each --interval, and on SIGUSR1. SIGINT "
	"and SIGTERM end it. All of it: docs/vnf.md\n"
	"exit: 0 done, 1 error, 2 wrong usage\n";

__attribute__((format(printf, 1, 2))) static int wrong(const char *format, ...)
{
	va_list arguments;

	fputs("dray-vnf: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputs("; see dray-vnf --help\n", stderr);
	return -1;
}

/* Split "PORT=VALUE": the value, or NULL. */
static const char *of_port(const char *text, uint32_t *port)
{
	const char *value = strchr(text, '=');
	char number[4];

	if (!value || value - text >= (int)sizeof(number))
		return NULL;
	memcpy(number, text, (size_t)(value - text));
	number[value - text] = '\0';
	return number_read32(number, 0, PORTS_MAX - 1, port) ? value + 1 : NULL;
}

static bool set_mtu(struct options *o, const char *text)
{
	const char *value;
	uint32_t port, mtu;

	if (!strchr(text, '=')) {
		if (!number_read32(text, 68, 65535, &mtu))
			return false;
		for (port = 0; port < PORTS_MAX; port++)
			o->mtu[port] = mtu;
		o->mtu_of = UINT32_MAX;
		return true;
	}
	value = of_port(text, &port);
	if (!value || !number_read32(value, 68, 65535, &o->mtu[port]))
		return false;
	o->mtu_of |= 1u << port;
	return true;
}

static bool set_for_port(struct options *o, int id, const char *text)
{
	uint32_t port;
	const char *value;

	if (id == O_MTU)
		return set_mtu(o, text);
	value = of_port(text, &port);
	if (!value)
		return false;
	switch (id) {
	case O_NEXT_HOP:
		o->next_of |= 1u << port;
		return mac_read(value, o->next[port]);
	case O_IP:
		o->ip_of |= 1u << port;
		return number_ip4(value, &o->ip[port]);
	default:
		o->peer_of |= 1u << port;
		return number_ip4(value, &o->peer[port]);
	}
}

static bool set_role(struct options *o, const char *text)
{
	o->gnb = strcmp(text, "gnb") == 0;
	return o->gnb || strcmp(text, "upf") == 0;
}

static bool set_sessions(struct options *o, int id, const char *text)
{
	o->numbered = true;
	switch (id) {
	case O_TUNNELS:
		return number_read32(text, 1, SESSIONS_MAX, &o->tunnels);
	case O_TEID:
		return number_read32(text, 0, UINT32_MAX, &o->teid);
	case O_UE:
		return number_ip4(text, &o->ue);
	default:
		return number_read32(text, 0, 63, &o->qfi);
	}
}

static bool set_worker(struct options *o, int id, const char *text)
{
	switch (id) {
	case O_ANNOUNCED:
		return o->announced = true;
	case O_SILENCE:
		return number_time(text, &o->silence_ns);
	case O_REDIS:
		return store_address_read(text, &o->keep.redis);
	case O_LAG:
		return number_time(text, &o->keep.lag_ns);
	case O_IDLE:
		return number_time(text, &o->keep.idle_ns) && o->keep.idle_ns >= 1000000000;
	default:
		return number_read32(text, 1, TRACK_MAX, &o->keep.sessions);
	}
}

static bool set_of_mode(struct options *o, int id, const char *text)
{
	switch (id) {
	case O_ROUTES:
		o->routes_path = text;
		return true;
	case O_GENERATE:
		return number_read32(text, 1, ROUTES_MAX - 1,
				     &o->routes); /* the last one is for the default route */
	case O_SEED:
		return number_read(text, 0, UINT64_MAX, &o->seed);
	case O_DEFAULT_ROUTE:
		o->has_default_route = true;
		return number_read32(text, 0, PORTS_MAX - 1, &o->default_route);
	case O_SVLANS:
		return number_read32(text, 1, 4094, &o->svlans);
	case O_SVLAN_BASE:
		return number_read32(text, 1, 4094, &o->svlan_base);
	case O_CVLAN_BASE:
		return number_read32(text, 1, 4095 - BNG_CVLANS, &o->cvlan_base);
	case O_LABEL:
		return number_read32(text, 0, (1u << 20) - 1, &o->label);
	case O_ROLE:
		return set_role(o, text);
	case O_PLAIN:
		return o->plain = true;
	case O_SESSIONS:
		o->sessions_path = text;
		return true;
	case O_TUNNELS:
	case O_TEID:
	case O_UE:
	case O_QFI:
		return set_sessions(o, id, text);
	case O_ANNOUNCED:
	case O_SILENCE:
	case O_REDIS:
	case O_LAG:
	case O_IDLE:
	case O_TRACK:
		return set_worker(o, id, text);
	default:
		return set_for_port(o, id, text);
	}
}

static bool set(struct options *o, int id, const char *text)
{
	switch (id) {
	case O_STAGES:
		return o->stages = true;
	case O_YIELD:
		return o->yield = true;
	case O_SLEEP:
		return number_time(text, &o->sleep_ns) && o->sleep_ns < 1000000000;
	case O_WORK:
		return number_time(text, &o->work_ns) && o->work_ns < 1000000000;
	case O_QUEUES:
		return number_read32(text, 1, 64, &o->queues);
	case O_BURST:
		return number_read32(text, 1, BURST_MAX, &o->burst);
	case O_DESCRIPTORS:
		return number_read32(text, 32, 32768, &o->descriptors);
	case O_INTERVAL:
		return number_time(text, &o->interval_ns) && o->interval_ns >= 10000000;
	case O_DURATION:
		return number_time(text, &o->duration_ns);
	case O_PACKETS:
		return number_read(text, 1, UINT64_MAX / 2, &o->packets);
	default:
		return set_of_mode(o, id, text);
	}
}

#define EVEN_PORTS 0x5555u

/* Reject options that the mode would not read. */
static int check_used(const struct options *o)
{
	if (o->mode == MODE_BNG && (o->next_of | o->peer_of) & EVEN_PORTS)
		return wrong("--next-hop and --peer are for the core's ports, which are odd: users "
			     "have tags, and a MAC of their own");
	if (o->mode == MODE_GTPU && o->peer_of & ~1u)
		return wrong("--peer is for port 0: the far end of all numbered tunnels");
	if (o->sessions_path && (o->numbered || o->peer_of))
		return wrong("--sessions has all of it in its file: leave out --tunnels, --teid, "
			     "--ue, --qfi and --peer");
	if (o->mode == MODE_L3FWD && o->seed && !o->routes)
		return wrong("--seed is for --generate");
	return 0;
}

static int check_together(const struct options *o)
{
	if (check_used(o) < 0)
		return -1;
	if (o->mode == MODE_SESSION && (o->stages || o->queues > 1))
		return wrong("session has its sessions on one core: leave out --stages and "
			     "--queues");
	if (o->stages && o->queues > 1)
		return wrong("--stages has one core that receives, from one queue of each port: "
			     "leave out --queues");
	if (o->mode == MODE_L3FWD && !o->routes_path == !o->routes)
		return wrong(
			"l3fwd takes its routes from --routes FILE or --generate N, one of them");
	if (o->mode == MODE_BNG && o->svlan_base + o->svlans > 4095)
		return wrong("--svlan-base and --svlans go beyond VLAN 4094");
	if (o->mode == MODE_GTPU && (uint64_t)o->ue + o->tunnels > 0xe0000000u)
		return wrong("--ue and --tunnels go beyond 223.255.255.255");
	if (o->mode == MODE_GTPU && (uint64_t)o->teid + o->tunnels > UINT32_MAX)
		return wrong("--teid and --tunnels go beyond 4294967295");
	return 0;
}

static struct options defaults(enum mode mode)
{
	return (struct options){
		/* as DPDK's own programs */
		.mode = mode,
		.queues = 1,
		.burst = 32,
		.descriptors = 512,
		.svlans = 128,
		.svlan_base = 1,
		.cvlan_base = 1,
		.label = 3,
		.tunnels = 10000,
		.teid = 1,
		.ue = 0x0a3c0001 /* 10.60.0.1 */,
		.qfi = 9,
		.silence_ns = 200000000,
		.keep = {.sessions = 65536, .lag_ns = 10000000, .idle_ns = 300000000000},
	};
}

int options_read(int argc, char **argv, struct options *o)
{
	enum mode mode;
	int id, which;

	if (argc < 1)
		return wrong(
			"behind -- comes a mode: none, l2fwd, l3fwd, bng, gtpu, lb or session");
	if (strcmp(argv[0], "--help") == 0) {
		fputs(help, stdout);
		return 1;
	}
	for (mode = MODE_NONE; mode < MODE_COUNT && strcmp(argv[0], mode_name(mode)) != 0; mode++)
		;
	if (mode == MODE_COUNT)
		return wrong("%s is none of none, l2fwd, l3fwd, bng, gtpu, lb, session", argv[0]);
	*o = defaults(mode);
	opterr = 0;
	optind = 0; /* EAL reads its arguments with the same functions */
	while ((id = getopt_long(argc, argv, "+", known, &which)) != -1) {
		if (id == '?' || id == ':')
			return wrong("%s is no option, or lacks its value", argv[optind - 1]);
		if (!(modes_of(id) & 1u << mode))
			return wrong("--%s is not for %s", known[which].name, argv[0]);
		if (!set(o, id, optarg))
			return wrong("--%s: %s is not possible", known[which].name, optarg);
	}
	if (optind != argc)
		return wrong("%s: not expected", argv[optind]);
	return check_together(o);
}
