/* A libnvidia-ml.so.1 with eight healthy GPUs that answers at once: what is left is the agent's own cost. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define GPUS 8
#define LINKS 18
typedef struct { uint32_t id, scope; int64_t at, latency; int type, ret; union { double d; uint64_t u; } value; } field_t;
static int gpus[GPUS];

static int text(char *into, const char *value) { strcpy(into, value); return 0; }
static int number(unsigned *into, unsigned value) { *into = value; return 0; }
static int index_of(void *gpu) { return (int)((int *)gpu - gpus); }

int nvmlInitWithFlags(unsigned flags) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *into, unsigned n) { return text(into, "575.57.08"); }
int nvmlDeviceGetCount_v2(unsigned *n) { return number(n, GPUS); }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **gpu) { *gpu = &gpus[i]; return 0; }
int nvmlDeviceGetUUID(void *gpu, char *into, unsigned n) { sprintf(into, "GPU-%08d", index_of(gpu)); return 0; }
int nvmlDeviceGetName(void *gpu, char *into, unsigned n) { return text(into, "NVIDIA H100 80GB HBM3"); }
int nvmlDeviceGetSerial(void *gpu, char *into, unsigned n) { sprintf(into, "16528230%05d", index_of(gpu)); return 0; }
int nvmlDeviceGetBoardPartNumber(void *gpu, char *into, unsigned n) { return text(into, "692-2G520-0280-001"); }
int nvmlDeviceGetVbiosVersion(void *gpu, char *into, unsigned n) { return text(into, "96.00.89.00.01"); }
int nvmlDeviceGetInforomImageVersion(void *gpu, char *into, unsigned n) { return text(into, "G520.0200.00.05"); }
int nvmlDeviceGetMemoryInfo(void *gpu, uint64_t *into) { into[0] = 80ULL << 30; into[1] = 16ULL << 30; into[2] = 64ULL << 30; return 0; }
int nvmlDeviceGetUtilizationRates(void *gpu, unsigned *into) { into[0] = 97; into[1] = 60; return 0; }
int nvmlDeviceGetPowerUsage(void *gpu, unsigned *into) { return number(into, 610000); }
int nvmlDeviceGetEnforcedPowerLimit(void *gpu, unsigned *into) { return number(into, 700000); }
int nvmlDeviceGetPowerManagementLimitConstraints(void *gpu, unsigned *least, unsigned *most) { *least = 200000; return number(most, 700000); }
int nvmlDeviceGetTemperature(void *gpu, unsigned sensor, unsigned *into) { return number(into, 62); }
int nvmlDeviceGetTemperatureThreshold(void *gpu, unsigned which, unsigned *into) { return number(into, which == 2 ? 95 : 89 + 3 * !which); }
int nvmlDeviceGetCurrentClocksEventReasons(void *gpu, uint64_t *into) { *into = 0; return 0; }
int nvmlDeviceGetClockInfo(void *gpu, unsigned which, unsigned *into) { return number(into, which == 1 ? 1980 : 2619); }
int nvmlDeviceGetMaxClockInfo(void *gpu, unsigned which, unsigned *into) { return number(into, 1980); }
int nvmlDeviceGetCurrPcieLinkGeneration(void *gpu, unsigned *into) { return number(into, 5); }
int nvmlDeviceGetCurrPcieLinkWidth(void *gpu, unsigned *into) { return number(into, 16); }
int nvmlDeviceGetMaxPcieLinkGeneration(void *gpu, unsigned *into) { return number(into, 5); }
int nvmlDeviceGetMaxPcieLinkWidth(void *gpu, unsigned *into) { return number(into, 16); }
int nvmlDeviceGetMigMode(void *gpu, unsigned *now, unsigned *pending) { *pending = 0; return number(now, 0); }
int nvmlDeviceGetNvLinkState(void *gpu, unsigned link, unsigned *into) { return link < LINKS ? number(into, 1) : 2; }
int nvmlDeviceGetGpuFabricInfoV(void *gpu, unsigned *info) { info[5] = 0; info[7] = 3; return 0; }
int nvmlDeviceGetSramEccErrorStatus(void *gpu, void *status) { return 0; }
int nvmlDeviceGetMemoryErrorCounter(void *gpu, int type, int kind, int where, uint64_t *into) { *into = 0; return 0; }
int nvmlDeviceGetFieldValues(void *gpu, int n, field_t *fields) {
  for (int i = 0; i < n; i++) { fields[i].ret = 0; fields[i].type = 3; fields[i].value.u = fields[i].id == 82 ? 66 : 0; }
  return 0;
}
int nvmlEventSetCreate(void **set) { *set = gpus; return 0; }
int nvmlDeviceRegisterEvents(void *gpu, uint64_t kinds, void *set) { return 0; }
int nvmlEventSetWait_v2(void *set, void *data, unsigned ms) { return 10; }
