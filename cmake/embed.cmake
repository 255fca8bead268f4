# Turns files into C arrays: cmake -DOUTPUT=x.c "-DFILES=page.js;page.css" -P embed.cmake
# A file dir/page.js becomes dv_page_js[] and dv_page_js_size.
set(text "#include <stddef.h>\n")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  string(REPLACE "." "_" name dv_${name})
  file(READ ${file} bytes HEX)
  string(LENGTH "${bytes}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND text "extern const unsigned char ${name}[];\nextern const size_t ${name}_size;\n"
    "const unsigned char ${name}[] = {\n${bytes}};\nconst size_t ${name}_size = ${size};\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
