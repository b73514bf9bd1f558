/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program as a whole over UDP and null ports: accounts balance, rates are kept, every role ends
 * as it is asked to, wrong usage is refused.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

/*
 * The count is of the schedule, so it is exact however late the machine is; time can only be longer
 * than asked for.
 */
static void rate(void)
{
	struct child sender =
		START("send", "--port", "null", "--rate", "2kpps", "--duration", "500ms");
	char *r = child_result(&sender, 0);

	CHECK_EQ(json_number(r, "scheduled"), 1000);
	CHECK_EQ(json_number(r, "sent") + json_number(r, "unsent"), 1000);
	CHECK_EQ(json_number(r, "lateness.n"), json_number(r, "sent"));
	CHECK(json_number(r, "sent") > 0);
	CHECK(json_number(r, "elapsed_ns") >= 490e6 || json_number(r, "unsent") > 0);
	CHECK(json_number(r, "sent") <= 2 + json_number(r, "elapsed_ns") * 2e-6); /* never ahead */
	free(r);
	sender = START("send", "--port", "null", "--rate", "10Mbps", "--layer", "payload", "--size",
		       "1292", "--duration", "200ms", "--busy");
	r = child_result(&sender, 0);
	CHECK_EQ(json_number(r, "scheduled"), 200); /* packets of 10,000 bits */
	free(r);
}

/* What is too late is not sent, and said: a bound that cannot be kept. */
static void unsent(void)
{
	struct child sender = START("send", "--port", "null", "--rate", "1kpps", "--packets", "300",
				    "--catch-up", "1ns", "--strict");
	char *r = child_result(&sender, 4);

	CHECK_EQ(json_number(r, "scheduled"), 300);
	CHECK(json_number(r, "unsent") > 0);
	CHECK_EQ(json_number(r, "sent") + json_number(r, "unsent"), 300);
	free(r);
}

static void round_trips(void)
{
	char to[64];
	struct child sink = SINK(to, "sink", "--port", "udp:127.0.0.1:0", "--reflect"), ping;
	char *r;

	ping = START("ping", "--port", "udp:127.0.0.1:0", "--to", to, "--packets", "500", "--rate",
		     "2kpps", "--catch-up", "60s", "--flows", "4", "--warmup", "20", "--check",
		     "--timeout", "10s", "--strict");
	r = child_result(&ping, 0);
	CHECK_EQ(json_number(r, "received"), 500);
	CHECK_EQ(json_number(r, "round_trip.n"), 500);
	CHECK_EQ(json_number(r, "warmup_received"), 20);
	CHECK(json_number(r, "round_trip.min") > 0);
	CHECK_EQ(json_number(r, "forward.sum") + json_number(r, "back.sum"),
		 json_number(r, "round_trip.sum"));
	CHECK_EQ(json_number(r, "round_trip_intended.sum") - json_number(r, "round_trip.sum"),
		 json_number(r, "lateness.sum"));
	CHECK(json_number(r, "lateness.sum") > 0);
	free(r);
	ping = START("ping", "--port", "udp:127.0.0.1:0", "--to", to, "--packets", "300", "--rate",
		     "max", "--closed", "--stream", "2", "--timeout", "10s", "--strict", "--spin",
		     "20us", "--warmup", "5");
	r = child_result(&ping, 0);
	CHECK_EQ(json_number(r, "received"), 300);
	CHECK_EQ(json_number(r, "reordered"), 0);
	free(r);
	kill(sink.pid, SIGINT);
	r = child_result(&sink, 0);
	CHECK_EQ(json_number(r, "received"), 500);
	CHECK_EQ(json_number(r, "reflect_dropped"), 0);
	CHECK(json_number(r, "other_stream") >= 300);
	free(r);
}

/* Over either family, sizes are those of frames; whole headers say when they were turned. */
static void sizes(const char *at, const char *size, unsigned bytes, unsigned whole)
{
	char to[64];
	struct child sink = SINK(to, "sink", "--port", at, "--reflect", "--once", "--strict"), ping;
	char *r;

	ping = START("ping", "--port", at, "--to", to, "--packets", "100", "--rate", "2kpps",
		     "--catch-up", "60s", "--flows", "3", "--warmup", "7", "--size", size,
		     "--check", "--timeout", "10s", "--strict");
	r = child_result(&ping, 0);
	CHECK_EQ(json_number(r, "received"), 100);
	CHECK_EQ(json_number(r, "sent_bytes"), bytes);
	CHECK_EQ(json_number(r, "received_bytes"), bytes);
	CHECK_EQ(json_number(r, "round_trip.n"), 100);
	CHECK_EQ(json_number(r, "forward.n"), whole);
	/* Of a short header rounded up, by a thousandth at most. */
	CHECK(json_number(r, "round_trip_intended.sum") - json_number(r, "round_trip.sum") >=
	      json_number(r, "lateness.sum"));
	CHECK(json_number(r, "round_trip_intended.sum") - json_number(r, "round_trip.sum") <=
	      json_number(r, "lateness.sum") * 1.001);
	free(r);
	r = child_result(&sink, 0);
	CHECK_EQ(json_number(r, "received_bytes"), bytes);
	CHECK_EQ(json_number(r, "stream"), 1);
	CHECK(strncmp(strstr(r, "\"port\":\"") + 8, at, strlen(at) - 1) ==
	      0); /* but for the port number */
	free(r);
}

/* A closed loop whose replies never come gives up each in its time; nothing is invented. */
static void silence(void)
{
	char to[64];
	struct child sink = SINK(to, "sink", "--port", "udp:127.0.0.1:0", "--packets", "4"), ping;
	char *r;

	ping = START("ping", "--port", "udp:127.0.0.1:0", "--to", to, "--packets", "4", "--rate",
		     "max", "--closed", "--timeout", "20ms");
	r = child_result(&ping, 0);
	CHECK_EQ(json_number(r, "lost"), 4);
	CHECK_EQ(json_number(r, "round_trip.n"), 0);
	CHECK_EQ(json_number(r, "round_trip.p50"), -1);
	CHECK(json_number(r, "elapsed_ns") >= 60e6);
	free(r);
	r = child_result(&sink, 0);
	CHECK_EQ(json_number(r, "received"), 4);
	CHECK_EQ(json_number(r, "reflected"), 0);
	free(r);
}

/* Whatever is sent to a sink, it goes on, and follows the stream that it is set to. */
static void strangers(void)
{
	char to[64];
	struct child sink = SINK(to, "sink", "--port", "udp:127.0.0.1:0", "--stream", "7", "--once",
				 "--reflect", "--interval", "100ms"),
		     sender;
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)atoi(strrchr(to, ':') + 1))};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	uint8_t noise[1000];
	char *r;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (unsigned i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)(i * 151 >> 2);
	for (unsigned i = 0; i < 100; i++)
		CHECK(sendto(fd, noise, i * 10, 0, (struct sockaddr *)&at, sizeof(at)) ==
		      (ssize_t)i * 10);
	close(fd);
	sender = START("send", "--port", "udp:127.0.0.1:0", "--to", to, "--packets", "10",
		       "--stream", "8", "--catch-up", "60s");
	free(child_result(&sender, 0));
	sender = START("send", "--port", "udp:127.0.0.1:0", "--to", to, "--packets", "10",
		       "--stream", "7", "--catch-up", "60s", "--interval", "5ms");
	free(child_result(&sender, 0));
	r = child_result(&sink, 0);
	CHECK_EQ(json_number(r, "foreign"), 100);
	CHECK_EQ(json_number(r, "stream"), 7);
	CHECK_EQ(json_number(r, "received"), 10);
	CHECK_EQ(json_number(r, "other_stream"), 18); /* with its ends */
	CHECK(json_true(r, "clean"));
	free(r);
}

/* What overflows the receiver's own buffer is counted apart from what the link lost. */
static void overflow(const char *at)
{
	char to[64];
	struct child sink = SINK(to, "sink", "--port", at, "--buffer", "4096", "--once",
				 "--interval", "20ms"),
		     sender;
	char *r;

	kill(sink.pid, SIGSTOP);
	sender = START("send", "--port", at, "--to", to, "--packets", "1000", "--rate", "max",
		       "--size", "1000");
	free(child_result(&sender, 0));
	kill(sink.pid, SIGCONT);
	child_until(&sink, "received"); /* there is room again */
	/* The kernel tells with the next datagram; the first end packets were dropped as well. */
	sender = START("send", "--port", at, "--to", to, "--packets", "1");
	free(child_result(&sender, 0));
	r = child_result(&sink, 0);
	CHECK(json_number(r, "socket_drops") >= json_number(r, "lost"));
	CHECK(json_number(r, "socket_drops") > 500);
	CHECK(json_number(r, "socket_drops") <= 1017); /* of both, with their ends */
	free(r);
}

/* Packets and a signal that come while a sink has no CPU: it receives them, and ends. */
static void stopped(void)
{
	char to[64];
	struct child sink = SINK(to, "sink", "--port", "udp:127.0.0.1:0"), sender;
	char *r;

	kill(sink.pid, SIGSTOP);
	sender = START("send", "--port", "udp:127.0.0.1:0", "--to", to, "--packets", "500",
		       "--rate", "max");
	free(child_result(&sender, 0));
	kill(sink.pid, SIGINT);
	kill(sink.pid, SIGCONT);
	r = child_result(&sink, 0);
	CHECK_EQ(json_number(r, "received"), 500);
	CHECK(json_true(r, "end_seen"));
	free(r);
	sink = START("sink", "--port", "null"); /* packets never end there */
	kill(sink.pid, SIGINT);
	free(child_result(&sink, 0));
}

/* What a null port makes is of the size that is asked for, in order and whole. */
static void made(void)
{
	static const struct {
		const char *size;
		double bytes; /* of 12,000 frames */
	} sizes[] = {{"60", 720000}, {"97", 1164000}, {"imix", 4294000}};

	for (unsigned i = 0; i < 3; i++) {
		struct child sink = START("sink", "--port", "null", "--packets", "12000", "--size",
					  sizes[i].size, "--check", "--strict", "--interval", "1s");
		char *r = child_result(&sink, 0);

		CHECK(json_number(r, "received") >= 12000);
		CHECK_EQ(json_number(r, "expected"), json_number(r, "received"));
		CHECK(json_number(r, "received_bytes") >= sizes[i].bytes);
		CHECK(json_number(r, "received_bytes") <= sizes[i].bytes + 64 * 1514);
		free(r);
	}
}

/* Lines of intervals add up to the result. */
static void intervals(void)
{
	struct child sender = START("send", "--port", "null", "--rate", "2kpps", "--packets",
				    "1000", "--interval", "50ms");
	double sent = 0, lines = 0;
	char *line;
	int status;

	while ((line = child_line(&sender)) && strstr(line, "\"event\":\"interval\"")) {
		CHECK_EQ(json_number(line, "interval"), lines);
		sent += json_number(line, "sent") + json_number(line, "unsent");
		lines++;
		free(line);
	}
	CHECK(line && lines >= 1 && sent <= 1000 && sent > 0);
	CHECK_EQ(json_number(line, "scheduled"), 1000);
	free(line);
	fclose(sender.out);
	CHECK(waitpid(sender.pid, &status, 0) == sender.pid && status == 0);
}

static void addresses(void)
{
	CHECK_EQ(STATUS("sink", "--port", "udp:::1:5010"), 1);
	CHECK_EQ(STATUS("sink", "--port", "udp:[fe80::1]:5010"), 1);
	CHECK_EQ(STATUS("send", "--port", "null", "--to", "fd00::1:5010"), 2);
	CHECK_EQ(STATUS("send", "--port", "null", "--to", "[fd00::1]:0"), 2);
	CHECK_EQ(STATUS("send", "--port", "null", "--to", "[fe80::1%none-such]:5010"), 2);
	CHECK_EQ(STATUS("send", "--port", "null", "--to", "[fd00::1]:5010", "--size", "79"), 2);
	CHECK_EQ(STATUS("send", "--port", "udp:127.0.0.1:0", "--to", "[::1]:5010"), 1);
}

/* A sender that holds has its port and sends nothing until it is released. */
static void hold(const char *program)
{
	char to[64], *line;
	struct child sink = SINK(to, "sink", "--port", "udp:127.0.0.1:0", "--once"), sender = {0};
	int in[2], out[2], status;

	CHECK(pipe(in) == 0 && pipe(out) == 0);
	sender.pid = fork();
	CHECK(sender.pid >= 0);
	if (sender.pid == 0) {
		alarm(60);
		CHECK(dup2(in[0], 0) == 0 && dup2(out[1], 1) == 1 && close(in[0]) == 0 &&
		      close(in[1]) == 0);
		execl(program, program, "send", "--port", "udp:127.0.0.1:0", "--to", to,
		      "--packets", "5", "--catch-up", "60s", "--hold", (char *)NULL);
		_exit(126);
	}
	close(in[0]);
	close(out[1]);
	sender.out = fdopen(out[0], "r");
	CHECK(sender.out != NULL);
	line = child_line(&sender);
	CHECK(line && strstr(line, "\"event\":\"open\""));
	free(line);
	usleep(50000);
	CHECK(waitpid(sender.pid, &status, WNOHANG) == 0);
	close(in[1]);
	line = child_line(&sender);
	CHECK(line && strstr(line, "\"event\":\"ready\""));
	free(line);
	free(child_result(&sender, 0));
	line = child_result(&sink, 0);
	CHECK_EQ(json_number(line, "received"), 5);
	free(line);
}

static void loops(void)
{
	CHECK_EQ(STATUS("loop", "--port", "null"), 2);
	CHECK_EQ(STATUS("loop", "--port", "null", "--to-port", "udp:127.0.0.1:1"), 2);
	CHECK_EQ(STATUS("loop", "--port", "null", "--to-port", "null", "--both"), 2);
	CHECK_EQ(STATUS("loop", "--port", "udp:127.0.0.1:1", "--to-port", "udp:127.0.0.1:0"), 2);
	CHECK_EQ(STATUS("loop", "--port", "udp:127.0.0.1:0", "--to-port", "udp:127.0.0.1:1",
			"--both"),
		 2);
	CHECK_EQ(STATUS("loop", "--port", "udp:127.0.0.1:1", "--to-port", "udp:127.0.0.1:2",
			"--back-to", "127.0.0.1:1"),
		 2);
	CHECK_EQ(STATUS("send", "--port", "null", "--mtu", "1400"), 2);
	CHECK_EQ(STATUS("send", "--port", "dpdk:net_null0"), 2);
	CHECK_EQ(STATUS("send", "--port", "dpdk:net_null0", "--eal", "--no-huge"),
		 1); /* this program has no DPDK */
}

static void bulks(void)
{
	static const char *const wrong[] = {"max",
					    "20",
					    "1kpps,size=97",
					    "1kpps,flows=0",
					    "1kpps,flows=256",
					    "1kpps,dscp=64",
					    "1kpps,size",
					    "1kpps,burst=2",
					    "1kpps,size=65536"};

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		CHECK_EQ(STATUS("send", "--port", "null", "--packets", "1", "--bulk", wrong[i]), 2);
	CHECK_EQ(STATUS("send", "--port", "null", "--packets", "1", "--dscp", "64"), 2);
	CHECK_EQ(STATUS("send", "--port", "null", "--packets", "1", "--bulk", "1kpps", "--rate",
			"max"),
		 2);
	CHECK_EQ(STATUS("send", "--port", "null", "--packets", "1", "--bulk", "1kpps", "--flows",
			"256"),
		 2);
	CHECK_EQ(STATUS("send", "--port", "null", "--packets", "1", "--bulk", "1kpps", "--encap",
			"qinq:s=1,c=1"),
		 2);
	CHECK_EQ(STATUS("send", "--port", "null", "--packets", "1", "--bulk", "1kpps", "--stream",
			"4294967295"),
		 2);
	CHECK_EQ(STATUS("ping", "--port", "null", "--packets", "1", "--bulk", "1kpps"), 2);
	CHECK_EQ(STATUS("sink", "--port", "null", "--packets", "1", "--dscp", "1"), 2);
}

/* Which ports and options FAPI goes with, and a second of it through no port. */
static void fapis(void)
{
	struct child loop;
	char *r;

	CHECK_EQ(STATUS("send", "--port", "null", "--fapi", "scs=60"), 2);
	CHECK_EQ(STATUS("send", "--port", "packet:lo", "--fapi", "scs=30"), 2);
	CHECK_EQ(STATUS("send", "--port", "udp:127.0.0.1:0", "--fapi", "scs=30"), 2);
	CHECK_EQ(STATUS("sink", "--port", "null", "--fapi", "scs=30"), 2);
	CHECK_EQ(STATUS("ping", "--port", "null", "--fapi", "scs=30"), 2);
	CHECK_EQ(STATUS("send", "--port", "null", "--fapi", "scs=30", "--rate", "max"), 2);
	CHECK_EQ(STATUS("send", "--port", "null", "--fapi", "scs=30", "--size", "imix"), 2);
	CHECK_EQ(STATUS("send", "--port", "null", "--fapi", "scs=30", "--to-mac",
			"02:00:00:00:00:01"),
		 2);
	CHECK_EQ(STATUS("sink", "--port", "dray:a", "--fapi", "scs=30", "--reflect"), 2);
	CHECK_EQ(STATUS("sink", "--port", "dray:a", "--fapi", "scs=30", "--fronthaul", "scs=30"),
		 2);
	loop = START("loop", "--port", "null", "--to-port", "null", "--packets", "200", "--fapi",
		     "scs=15,dl-tti=128,tx-data=4194304", "--catch-up", "60s", "--check");
	r = child_result(&loop, 0);
	CHECK_EQ(json_number(r, "sink.received"), 200);
	CHECK_EQ(json_number(r, "sink.corrupt") + json_number(r, "sink.foreign"), 0);
	CHECK_EQ(json_number(r, "sink.received_bytes"), 100 * (128 + (4 << 20)));
	CHECK_EQ(json_number(r, "sender.interval_ns"), 1000000);
	CHECK(strstr(r, "\"size\":\"4194304\"") && strstr(r, "\"rate\":\"fapi\""));
	CHECK_EQ(json_number(strstr(r, "\"dl_tti\""), "window_ns"), 1000000);
	CHECK_EQ(json_number(strstr(r, "\"tx_data\""), "early"), 0);
	free(r);
}

int main(int argc, char **argv)
{
	test_program(argc, argv);
	test_pin();
	rate();
	unsent();
	round_trips();
	silence();
	strangers();
	overflow("udp:127.0.0.1:0");
	stopped();
	intervals();
	made();
	CHECK_EQ(STATUS("--help"), 0);
	CHECK_EQ(STATUS("nonsense"), 2);
	CHECK_EQ(STATUS("send", "--port", "udp:127.0.0.1:0"), 2);
	CHECK_EQ(STATUS("sink", "--port", "null", "--rate", "1pps"), 2);
	CHECK_EQ(STATUS("sink", "--port", "udp:127.0.0.1:0", "--size", "98"), 2);
	CHECK_EQ(STATUS("send", "--port", "null", "--rate", "fast"), 2);
	CHECK_EQ(STATUS("send", "--port", "null", "--size", "59"), 2);
	CHECK_EQ(STATUS("send", "--port", "null", "--size"), 2);
	CHECK_EQ(STATUS("send", "--port", "null", "--batch", "1"), 2);
	CHECK_EQ(STATUS("sink", "--port", "udp:127.0.0.1:0", "--batch", "65"), 2);
	CHECK_EQ(STATUS("send", "--port", "null", "--fronthaul", "scs=30"), 2);
	CHECK_EQ(STATUS("send", "--port", "packet:lo", "--fronthaul", "prb=51"), 2);
	CHECK_EQ(STATUS("send", "--port", "packet:lo", "--fronthaul", "scs=30", "--rate", "max"),
		 2);
	CHECK_EQ(STATUS("ping", "--port", "packet:lo", "--fronthaul", "scs=30"), 2);
	CHECK_EQ(STATUS("send", "--port", "packet:lo", "--fronthaul", "scs=30", "--dscp", "46"), 2);
	fapis();
	bulks();
	CHECK_EQ(STATUS("sink", "--port", "pigeon:1"), 1);
	CHECK_EQ(STATUS("sink", "--port", "udp:203.0.113.1:1"), 1);
	CHECK_EQ(STATUS("sink", "--port", "packet:none-such"), 1);
	CHECK_EQ(STATUS("sink", "--port", "dray:none-such"), 1);
	hold(argv[1]);
	loops();
	addresses();
	sizes("udp:127.0.0.1:0", "98", 9800, 100);
	sizes("udp:127.0.0.1:0", "97", 9700, 0);
	sizes("udp:127.0.0.1:0", "60", 6000, 0);
	sizes("udp:127.0.0.1:0", "imix", 8 * 4294 + 60 * 3 + 590, 8 * 5 + 1);
	test_needs_ip6();
	overflow("udp:[::1]:0");
	sizes("udp:[::1]:0", "118", 11800, 100);
	sizes("udp:[::1]:0", "80", 8000, 0);
	return 0;
}
