#include "format/foreign.h"

#include <string.h>

typedef struct beginning {
  size_t offset, length;
  const char *bytes, *sentence;
} beginning;

#define PANDAS(read) "; convert it in Python: pandas." read ".to_csv(\"data.csv\", index=False)"

static const beginning known[] = {
    {0, 4, "PAR1", "is a Parquet file" PANDAS("read_parquet(FILE)")},
    {0, 6, "ARROW1", "is a Feather or Arrow file" PANDAS("read_feather(FILE)")},
    {0, 4, "FEA1", "is a Feather file" PANDAS("read_feather(FILE)")},
    {0, 8, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
     "is an old Excel file; in Excel or LibreOffice, save it as CSV"},
    {0, 2, "\x1f\x8b", "is compressed by gzip; unpack it: gunzip FILE"},
    {0, 3, "BZh", "is compressed by bzip2; unpack it: bunzip2 FILE"},
    {0, 6,
     "\xfd"
     "7zXZ",
     "is compressed by xz; unpack it: unxz FILE"},
    {0, 4, "\x28\xb5\x2f\xfd", "is compressed by zstd; unpack it: unzstd FILE"},
    {0, 2, "\x80\x02",
     "is a pickle of Python, perhaps of PyTorch; in Python: x = torch.load(FILE) or "
     "pickle.load(open(FILE, \"rb\")), then numpy.savez(\"data.npz\", x=x)"},
    {0, 2, "\x80\x03",
     "is a pickle of Python; in Python: x = pickle.load(open(FILE, \"rb\")), then "
     "numpy.savez(\"data.npz\", x=x)"},
    {0, 2, "\x80\x04",
     "is a pickle of Python; in Python: x = pickle.load(open(FILE, \"rb\")), then "
     "numpy.savez(\"data.npz\", x=x)"},
    {0, 2, "\x80\x05",
     "is a pickle of Python; in Python: x = pickle.load(open(FILE, \"rb\")), then "
     "numpy.savez(\"data.npz\", x=x)"},
    {0, 15, "SQLite format 3",
     "is an SQLite database; export a table: sqlite3 -header -csv FILE \"select * "
     "from TABLE\" > data.csv"},
    {0, 4, "TDSm",
     "is a TDMS file of LabVIEW; in Python: nptdms.TdmsFile(FILE).as_dataframe()"
     ".to_csv(\"data.csv\", index=False)"},
    {0, 3, "MDF",
     "is an MDF file; in Python: asammdf.MDF(FILE).to_dataframe(raster=0.01).to_csv(\"data.csv\")"},
    {0, 7, "#ROSBAG", "is a ROS bag; write a topic as CSV: rostopic echo -b FILE -p /TOPIC > data.csv"},
    {0, 5, "\x89MCAP", "is an MCAP file; write its topics as CSV or store them by numpy.savez"},
    {4, 4, "ftyp",
     "is a video; store its frames: numpy.savez(\"data.npz\", x=frames), [1, steps, height, width]"},
    {8, 4, "AVI ",
     "is a video; store its frames: numpy.savez(\"data.npz\", x=frames), [1, steps, height, width]"},
    {8, 4, "WAVE",
     "is a sound; in Python: rate, x = scipy.io.wavfile.read(FILE), then numpy.savez(\"data.npz\", "
     "x=x, fs=rate)"},
    {0, 4, "\x89PNG",
     "is an image; stack images as [1, steps, height, width]: numpy.savez(\"data.npz\", x=images)"},
    {0, 3, "\xff\xd8\xff",
     "is an image; stack images as [1, steps, height, width]: numpy.savez(\"data.npz\", x=images)"},
    {0, 4, "%PDF", "is a PDF document; export its table as CSV"},
};

const char *dv_foreign(const unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    const beginning *b = &known[i];
    if (b->offset + b->length <= size && !memcmp(bytes + b->offset, b->bytes, b->length)) return b->sentence;
  }
  return NULL;
}

static int ends_in(const char *name, const char *end) {
  size_t length = strlen(name), n = strlen(end);
  return length >= n && !strcmp(name + length - n, end);
}

const char *dv_foreign_entry(const char *name) {
  if (!strcmp(name, "xl/workbook.xml"))
    return "is an Excel file; in Excel or LibreOffice, save it as CSV, or in Python: "
           "pandas.read_excel(FILE).to_csv(\"data.csv\", index=False)";
  if (!strcmp(name, "META-INF/manifest.xml"))
    return "is a spreadsheet of LibreOffice; save it as CSV there, or: soffice --convert-to csv FILE";
  if (ends_in(name, "/data.pkl"))
    return "is a file of PyTorch; in Python: x = torch.load(FILE), then numpy.savez(\"data.npz\", "
           "x=x.numpy())";
  if (ends_in(name, ".zarray") || ends_in(name, "zarr.json"))
    return "is a Zarr archive; in Python: numpy.savez(\"data.npz\", **zarr.open(FILE))";
  return NULL;
}

const char *dv_foreign_array(const char *name) {
  const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
  if (slash && (!strcmp(last, "block0_values") || !strcmp(last, "table")))
    return "was written by pandas; convert it in Python: pandas.read_hdf(FILE).to_csv(\"data.csv\", "
           "index=False)";
  return NULL;
}
